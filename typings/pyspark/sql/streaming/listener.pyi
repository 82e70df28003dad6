from typing import Any
from uuid import UUID

class SourceProgress:
    description: str
    endOffset: str
    latestOffset: str

class StateOperatorProgress:
    numRowsDroppedByWatermark: int

class StreamingQueryProgress:
    id: UUID
    name: str | None
    timestamp: str
    batchId: int
    eventTime: dict[str, str]
    observedMetrics: dict[str, Any]
    numInputRows: int
    stateOperators: list[StateOperatorProgress]
    sources: list[SourceProgress]

class QueryStartedEvent: ...

class QueryProgressEvent:
    progress: StreamingQueryProgress

class QueryIdleEvent: ...

class QueryTerminatedEvent:
    id: UUID
    runId: UUID

class StreamingQueryListener: ...
