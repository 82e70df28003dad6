from typing import Any

from pyspark.sql.types import StructType

def to_arrow_schema(schema: StructType) -> Any: ...
