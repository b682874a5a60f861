import pandas

drops = pandas.read_parquet("pipeline.parquet", dtype_backend="pyarrow")
print(drops[drops["dqs"] >= 60].groupby("releaseDate")["name"].count())
