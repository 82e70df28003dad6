from datetime import tzinfo

class AutoDateLocator:
    def __init__(self, tz: tzinfo) -> None: ...

class ConciseDateFormatter:
    def __init__(self, locator: AutoDateLocator, tz: tzinfo) -> None: ...
