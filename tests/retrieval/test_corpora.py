"""Files of others, as the fits read them."""

import json
from pathlib import Path

from tests.retrieval import corpora


def test_a_sentence_of_an_article_is_a_memory_and_answers_where_the_answer_begins(tmp_path: Path) -> None:
    said = "It was begun in 1887. Eiffel's firm built it, of iron. (What for?) A fair."
    asked = [
        {"question": "Who built it?", "answers": [{"text": "Eiffel", "answer_start": said.index("Eiffel")}]},
        {"question": "Why?", "answers": [{"text": "A fair", "answer_start": said.index("A fair")}]},
        {"question": "How high is it?", "answers": []},
    ]
    articles = {"data": [{"paragraphs": [{"context": said, "qas": asked}, {"context": "Other.", "qas": []}]}]}
    (tmp_path / "articles.json").write_text(json.dumps(articles))
    (article,) = corpora.articles(tmp_path / "articles.json", "articles")
    by_key = {memory.key: memory.content for memory in article.memories}
    assert [*by_key.values()] == [
        "It was begun in 1887.",
        "Eiffel's firm built it, of iron.",
        "(What for?) A fair.",
        "Other.",
    ]
    told = [[by_key[key] for key in question.gold] for question in article.questions]
    assert told == [["Eiffel's firm built it, of iron."], ["(What for?) A fair."], []]
