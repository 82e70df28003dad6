from uuid import UUID

class SourceProgress:
    description: str
    endOffset: str
    latestOffset: str

class StreamingQueryProgress:
    id: UUID
    name: str | None
    batchId: int
    sources: list[SourceProgress]

class QueryStartedEvent: ...

class QueryProgressEvent:
    progress: StreamingQueryProgress

class QueryIdleEvent: ...

class QueryTerminatedEvent:
    id: UUID

class StreamingQueryListener: ...
