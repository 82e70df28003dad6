"""Kafka in PySpark: `spark.read.format("kclient")`."""
