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
    batchId: int
    numInputRows: int
    stateOperators: list[StateOperatorProgress]
    sources: list[SourceProgress]

class QueryStartedEvent: ...

class QueryProgressEvent:
    progress: StreamingQueryProgress

class QueryIdleEvent: ...

class QueryTerminatedEvent:
    id: UUID

class StreamingQueryListener: ...
