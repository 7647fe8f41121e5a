"""Strings through the whole way: host steps, ids, and what is refused."""

import numpy as np
from onnx import TensorProto, helper
import pytest

import rlx
from rlx.host.regex import full_match
from tests.api.toys import F, I, model, node, value

S, BOOL = TensorProto.STRING, TensorProto.BOOL


def one(op, x, out_type=S, *, elem_type=S, opset=20, domain="", **attributes):
    """The output of a model of one node on one input."""
    made = model([helper.make_node(op, ["x"], ["y"], name="only", domain=domain, **attributes)],
                 [value("x", elem_type, [None] * np.ndim(x))], [value("y", out_type)], opset=opset)
    with rlx.load(made) as session:
        return session.run({"x": x})["y"]


def texts(*words):
    return np.array(words, object)


@pytest.mark.parametrize("numbers, expected", [
    (np.array([1.5, 0.1, 1e20, np.nan, np.inf, -np.inf], np.float32),
     ["1.5", "0.1", "1e+20", "NaN", "INF", "-INF"]),
    (np.array([-3, 2**63 - 1]), ["-3", "9223372036854775807"]),
    (np.array([True, False]), ["True", "False"]),
])
def test_numbers_become_the_shortest_text_and_come_back(numbers, expected):
    elem_type = helper.np_dtype_to_tensor_dtype(numbers.dtype)
    text = one("Cast", numbers, elem_type=elem_type, to=S)
    assert text.tolist() == expected
    back = one("Cast", text, elem_type, to=elem_type)
    assert back.dtype == numbers.dtype
    np.testing.assert_array_equal(back, numbers)


def test_text_of_many_forms_becomes_numbers():
    x = texts("3.14", " 1000 ", "1e-5", "inF", "+INF", "nan")
    np.testing.assert_array_equal(one("Cast", x, F, to=F), np.array(
        [3.14, 1000, 1e-5, np.inf, np.inf, np.nan], np.float32))


@pytest.mark.parametrize("word, target", [
    ("one", F), ("1_0", F), ("", I), ("999", TensorProto.INT8), ("inf", I), ("maybe", BOOL)])
def test_text_that_is_no_number(word, target):
    with pytest.raises(rlx.InputError) as caught:
        one("Cast", texts(word), target, to=target)
    assert caught.value.op == "Cast" and caught.value.node == "only"


def test_host_steps_are_counted_and_shown():
    made = model([node("StringConcat", "a b", "c"), node("Equal", "c b", "y")],
                 [value("a", S, ["n"]), value("b", S, ["n"])], [value("y", BOOL)], opset=20)
    with rlx.load(made) as session:
        y = session.run({"a": texts("", "é"), "b": texts("x", "x")})["y"]
        assert y.tolist() == [True, False]
        assert session.counters()["host_calls"] == 1
        assert [row["rung"] for row in session.explain() if row["op"] == "StringConcat"] == ["Host"]


def test_what_follows_a_host_step_takes_the_size_it_found():
    made = model([helper.make_node("StringSplit", ["x"], ["s", "n"], delimiter=","),
                  node("Shape", "s", "y"), node("ReduceSum", "n", "t", keepdims=0)],
                 [value("x", S, ["n"])], [value("y", I), value("t", I), value("s", S)], opset=20)
    with rlx.load(made) as session:
        for x, parts in ((texts("a,b,c", ""), [["a", "b", "c"], ["", "", ""]]),
                         (texts("a,"), [["a", ""]])):
            got = session.run({"x": x})
            assert got["s"].tolist() == parts and got["y"].tolist() == [len(x), len(parts[0])]
            assert got["t"] == sum(word.count(",") + 1 for word in x)
        assert session.run({"x": texts()})["s"].shape == (0, 0)


@pytest.mark.parametrize("axis, x, expected", [
    (None, texts("b", "a", "b", "é", "Z"), (["Z", "a", "b", "é"], [4, 1, 0, 3], [2, 1, 2, 3, 0],
                                            [1, 1, 2, 1])),
    (0, texts("b", "a", "b", "a").reshape(2, 2), ([["b", "a"]], [0], [0, 0], [2])),
    (1, texts("b", "a", "b", "a").reshape(2, 2), ([["a", "b"], ["a", "b"]], [1, 0], [1, 0],
                                                  [1, 1])),
    (None, texts(), ([], [], [], [])),
])
def test_sorted_unique_of_strings(axis, x, expected):
    options = {} if axis is None else {"axis": axis}
    made = model([node("Unique", "x", "y first inverse counts", **options)],
                 [value("x", S, [None] * x.ndim)],
                 [value("y", S), *(value(k, I) for k in ("first", "inverse", "counts"))])
    got = rlx.run(made, x)
    assert tuple(v.tolist() for v in got.values()) == expected


def test_normaliser_keeps_the_case_of_what_it_compares():
    x = texts("Monday", "tuesday", "MONDAY")
    options = {"stopwords": ["monday"], "case_change_action": "UPPER"}
    assert one("StringNormalizer", x, **options).tolist() == ["TUESDAY"]
    assert one("StringNormalizer", x, is_case_sensitive=1, **options).tolist() == [
        "MONDAY", "TUESDAY", "MONDAY"]
    assert one("StringNormalizer", x[None, :1], **options).tolist() == [[""]]


@pytest.mark.parametrize("pattern, yes, no", [
    ("a*", ["", "aaa"], ["b", "aab"]), ("a|bc", ["a", "bc"], ["abc", "ac"]),
    ("(?i)ab[c-e]", ["ABC", "abD"], ["abf"]), ("[^a-c]+", ["xyz"], ["xaz"]),
    (r"\d{2,3}", ["12", "123"], ["1", "1234"]), (r"\bfoo\b.*", ["foo bar"], ["foobar"]),
    ("^a$", ["a"], ["a\n"]), ("a.c", ["abc"], ["a\nc"]), ("(?s)a.c", ["a\nc"], ["ac"]),
    ("[[:alpha:]]+", ["aZ"], ["a1"]), (r"\pL+", ["äß"], ["1"]), (r"\Qa.b\E", ["a.b"], ["axb"]),
    (r"\x41\x{42}", ["AB"], ["ab"]), ("(?P<n>a)(?:b)", ["ab"], ["a"]), ("x{,2}", ["x{,2}"], ["x"]),
    ("(a+)+", ["a" * 40], ["a" * 4000 + "b"]), (r"[\w.-]+", ["a-b.c"], ["a b"]),
    ("[]a]", ["]"], ["b"]),
])
def test_patterns_in_linear_time(pattern, yes, no):
    matches = full_match(pattern)
    assert matches(texts(*yes)).all() and not matches(texts(*no)).any()


@pytest.mark.parametrize("pattern", ["(", ")", "a**", "[z-a]", "*", r"(a)\1", "(?=a)", "(?<!a)",
                                     r"\p{Greek}", "x{2000}", "[[:foo:]]", "\\", "((a{900}){900})"])
def test_patterns_that_mean_nothing(pattern):
    made = model([node("RegexFullMatch", "x", "y", pattern=pattern)], [value("x", S, ["n"])],
                 [value("y", BOOL)], opset=20)
    with pytest.raises((rlx.ModelError, rlx.UnsupportedError)) as caught:
        rlx.load(made)
    assert caught.value.op == "RegexFullMatch" and caught.value.node


def tfidf(x, **attributes):
    defaults = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0,
                "ngram_counts": [0, 2], "ngram_indexes": [2, 0, 1]}
    elem_type = S if x.dtype == object else I
    return one("TfIdfVectorizer", x, F, elem_type=elem_type, opset=9, **defaults | attributes)


def test_n_grams_of_strings():
    pool = ["a", "b", "a", "b"]  # the 1-grams a, b, the 2-gram a b
    x = texts("a", "b", "c", "a", "b", "b").reshape(2, 3)
    assert tfidf(x, pool_strings=pool).tolist() == [[1, 1, 1], [2, 1, 1]]
    assert tfidf(x[1], pool_strings=pool, mode="IDF",
                 weights=[.5, 2, 3]).tolist() == [2, 3, .5]
    # With one token left out, "a b" also stands at places 0 and 2 of the second row.
    assert tfidf(x[1], pool_strings=pool, max_skip_count=1).tolist() == [2, 2, 1]


def test_n_grams_in_too_few_tokens():
    assert tfidf(np.zeros(0, np.int64), pool_int64s=[1, 2, 1, 2]).tolist() == [0, 0, 0]
    assert tfidf(np.array([1]), pool_int64s=[1, 2, 1, 2], max_skip_count=5).tolist() == [0, 0, 1]


@pytest.mark.parametrize("attributes", [
    {}, {"pool_int64s": [1, 2, 1]}, {"pool_int64s": [1, 2, 1, 2], "ngram_indexes": [0]},
    {"pool_int64s": [1, 2, 1, 2], "ngram_counts": [0, 9]},
    {"pool_int64s": [1, 2, 1, 2], "mode": "IDF", "weights": [1.0]},
    {"pool_int64s": [1, 2, 1, 2], "max_skip_count": -1},
    {"pool_int64s": [1, 2, 1, 2], "ngram_indexes": [0, 1, 2**40]},
])
def test_pools_that_do_not_fit(attributes):
    with pytest.raises(rlx.ModelError, match="TfIdfVectorizer"):
        tfidf(np.array([1, 2]), **attributes)


def test_image_without_its_library(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(rlx.UnsupportedError, match="Pillow") as caught:
        one("ImageDecoder", np.zeros(3, np.uint8), TensorProto.UINT8, elem_type=TensorProto.UINT8)
    assert "rlx[image]" in str(caught.value)


def test_bytes_that_are_no_image_give_an_empty_one():
    pytest.importorskip("PIL", reason="needs Pillow")
    u8 = TensorProto.UINT8
    assert one("ImageDecoder", np.arange(9, dtype=np.uint8), u8, elem_type=u8).size == 0
