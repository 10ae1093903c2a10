"""The library's messages in Python's words: no option of the tool, no function or struct of C. conftest.py
looks at each error and warning of all tests; here are the texts in the sources, triggered or not."""
import re

import pytest
from conftest import ROOT, TOOL_WORDS

import kiln
from kiln._words import advice, words

LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
CALL = re.compile(r"\b(ki_fail\w*|ki_fault|ki_hint|ki_warn|ki_report_warn|\w*refuse|remedy)\s*\(")


def arguments(text, begin):
    """The text between the parentheses that open at begin."""
    depth, i = 0, begin
    while True:
        if text[i] == '"':
            i = LITERALS.match(text, i).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin + 1:i]
        i += 1


def texts():
    """(function, place among its texts, text) of every message in the library."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        source = path.read_text()
        for call in CALL.finditer(source):
            for place, found in enumerate(LITERALS.findall(arguments(source, call.end() - 1))):
                yield call[1], place, "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', found))


def test_every_text_of_the_library():
    found = list(texts())
    assert len(found) > 800
    said = [advice(text.replace("%s", "word")) for _, _, text in found]
    # the first text of a call that fails is the message, which is said whole
    said += [words(text.replace("%s", "word")) for function, place, text in found
             if function.startswith("ki_fail") and place == 0 and "must be sizeof" not in text]
    assert [text for text in said if TOOL_WORDS.search(text)] == []


@pytest.mark.parametrize("hint, said", [
    ("--type f32, less data, or --device cpu", "float32, less data, or device='cpu'"),
    ("repair or remove the row; --allow-nonfinite accepts such values",
     "repair or remove the row; missing='nan' accepts such values"),
    ("kiln_read_options.missing drop|mean|indicator does it",
     "missing='drop' or 'mean' or 'indicator' or 'nan' does it"),
    ("without --strict, the last one counts", ""),
    ("name a file, or leave --map out", "name a file, or read it into memory by kiln.read"),
    ("a larger memory budget (--memory), or --type f32", "a larger memory budget (memory), or float32"),
    ("kiln_read_options.missing mean|indicator keeps them", "missing='mean' or 'indicator' keeps them"),
    ("kiln info lists the levels; they differ in capital letters and blanks, too",
     "levels differ in capital letters and blanks, too"),
    ("cuda:0; 'kiln devices' lists what there is", "cuda:0; kiln.devices() lists what there is"),
    ("kiln_read_options.ignore 'a b' leaves it out", "ignore='a b' leaves it out"),
    ("leave it out (kiln_read_options.ignore)", "leave it out (ignore)"),
    ("raise kiln_glm_options.max_iterations", "raise max_iter")])
def test_hints(hint, said):
    assert advice(hint) == said


def test_a_target_that_is_there_already(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2\n2 1:3\n")
    with pytest.raises(kiln.KilnError) as caught:
        kiln.read(tmp_path / "t.svm", target="1")
    assert "target" in str(caught.value)


def test_rows_about_the_machine():
    for row in [*kiln.devices(), *kiln.doctor(), *kiln.explain((1000, 10))]:
        assert not any(TOOL_WORDS.search(str(value)) for value in row.values()), row
        assert all(isinstance(row[name], bool) for name in ("usable", "found", "chosen") if name in row)


def test_names_and_what_they_show():
    assert kiln.plot.convergence and kiln.accel.install
    with pytest.raises(AttributeError) as caught:
        kiln.Rigde
    assert caught.value.name == "Rigde" and caught.value.obj is kiln  # Python asks whether Ridge was meant
    model = kiln.Ridge(alpha=2.0, device="cpu").fit([[0.0], [1.0], [3.0]], [1.0, 2.0, 5.0])
    assert repr(model) == "Ridge(alpha=2.0, device='cpu')"
    assert "Ridge" in model._repr_html_() and "<th>solver</th>" in model.report_._repr_html_()
    data = kiln.read(ROOT / "data" / "flights.csv.gz", target="arr_delay")
    assert repr(data) == ("Data(X=65,470 x 126 float64, 455,058 entries; y=65,470 float64; feature_names="
                          "['dep_delay', 'carrier=9E', 'carrier=AA', ...]; 0 warnings)")
