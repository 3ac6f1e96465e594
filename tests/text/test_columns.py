"""Passwords in columns: of tables, of CSV, and of what SQL inserts."""

import csv
import json
import re
from io import StringIO

import pytest

from omegad.text.redaction import redact, secrets
from tests.builders import at_most

# The secrets stand between ⟨ and ⟩.
TABLES = [
    "user,password\nalice,⟨Tr0ub4dor&3⟩\nbob,⟨swordfish⟩\n",
    "name;email;password\r\nAlice;a@x.example;⟨Blue!Horse93⟩\r\n",
    "username\tpassword\trole\nalice\t⟨Winter2024!⟩\tadmin",
    '"login","password","note"\n"alice","⟨a,b!9c⟩","x, y"\n"bob","⟨hunter2x⟩","z"\n',
    "| user | password |\n| --- | --- |\n| alice | `⟨Winter2024!⟩` |\n| bob | **⟨swordfish⟩** |\n\nThe end.",
    (
        " id | username | password \n----+----------+-----------\n  1 | alice    | ⟨Winter2024!⟩\n"
        "  2 | bob      | ⟨hunter2x⟩\n(2 rows)\n"
    ),
    "+----+-------------+\n| id | db_password |\n+----+-------------+\n|  1 | ⟨Winter2024!⟩ |\n+----+-------------+\n",
    "notes.md:1:| user | password |\nnotes.md:2:| bob | ⟨hunter2x⟩ |\n",
    "usuario,contraseña\nana,⟨Perro123⟩\n",
    "utilisateur;mot de passe\nana;⟨Soleil2024⟩\n",
    "| 用户 | 密码 |\n|---|---|\n| 王 | ⟨abc12345⟩ |\n",
    "| host | pass |\n|---|---|\n| db-1 | ⟨StintRowan86⟩ |\n| db-2 | ⟨x9!k2b⟩ |\n",
    " login | PIN  \n-------+------\n ana   | ⟨4821⟩\n(1 row)\n",
    "+------+--------------+\n| name | API key      |\n+------+--------------+\n| ana  | ⟨StintRowan86⟩ |\n+------+--+\n",
    "user,pw,role\nana,⟨StintRowan86⟩,admin\n",
    "login;token\nana;⟨StintRowan86⟩\n",
    "| server | user credentials |\n| --- | --- |\n| db-1 | ⟨StintRowan86⟩ |\n",
    "| user | Secret |\n| --- | --- |\n| ana | ⟨StintRowan86⟩ |\n",
    (
        "NAME    USERNAME   PASSWORD        AGE\ndb-1    admin      ⟨Winter2024!⟩     3d\n"
        "db-2    bob        ⟨swordfish⟩       4d\n"
    ),
    "User  Password\n----  --------\nann   ⟨hunter2x⟩\n",
    'user,password,note\nbob,"⟨Hunter\n22x⟩","a\nb"\namy,⟨walrus9x⟩,"c"\n',
    'user,password,note\nbob,⟨hunter2x⟩,5" disk\namy,⟨walrus9x⟩,x\n',
    # Rows one place off their head.
    "| user | password |\n|---|---|\n| 1 | bob | ⟨HunTer7Xq9⟩ |\n",
    "| id | user | password |\n|---|---|---|\n| bob | ⟨HunTer7Xq9⟩ |\n| amy | ⟨Walrus7Xq9⟩ |\n",
    "| user | password | role |\n|---|---|---|\n| bob | ⟨HunTer7Xq9⟩ |\n",
    "| user | password | role |\n|---|---|---|\n| 1 | bob | ⟨HunTer7Xq9⟩ | admin |\n",
    "USER      PASSWORD\nbob       ⟨HunTer7Xq9⟩\namy      ⟨Walrus7Xq9⟩\njoe        ⟨Tiger7Xq9⟩\n",
    "NAME    USERNAME   PASSWORD\ndb-1    admin       ⟨HunTer7Xq9⟩\n",
    "INSERT INTO users (email, password, role) VALUES ('a@x.example', '⟨Winter2024!⟩', 'admin'),\n  ('b', '⟨tiger⟩', 'x');",
    "insert into users(name, password) values ('o''hara', crypt('⟨Winter2024!⟩', gen_salt('bf')))",
]
LOOK_ALIKES = [
    "| Option | Password |\n|---|---|\n| required | yes |\n| length | 8 characters |\n| hash | sha256 |\n",
    "| Key | Value |\n|---|---|\n| `Admin__Password` | A strong one |\n| `Allowed__0` | Your address1 |\n",
    "| id | username | password |\n|---|---|---|\n| int | varchar(50) | varchar(255) |\n",
    "| Name | Pass |\n|---|---|\n| Speed | Page loads under 3 seconds |\n| Size1 | 12ms |\n| Shape | yes |\n",
    "| Name | Token |\n|---|---|\n| red | --color-red-500 |\n| word | word1 |\n| scope | read:user |\n",
    "| LED | Pin |\n|---|---|\n| red | 4821 |\n",
    "def login(\n    user, password\n):\n    check1(user, password)\n",
    "const {\n  username, password,\n  email, name1,\n} = props;\n",
    "INSERT INTO users (name, password) VALUES (?, ?), ($1, $2), (:a, :b1);",
    "INSERT INTO users (name, password_hash) VALUES ('bob', 'unknown1');",
    "user, password, and more\n\nbob, hunter2x\n",
    "user  password\nbob reads hunter2x  twice\n",
    "Option    Password\nrequired  hunter2x\n",
    "| user | password |\n|---|---|\n| 1 | bob | letters |\n| 2 | 2024-01-15 | amy |\n",
    "user      password\n   bob       HunTer7Xq9\n",
    "  user      password\n  string    hunter2x  more\n",
]


@pytest.mark.parametrize("table", TABLES)
def test_what_stands_in_the_column_of_passwords_is_taken_out_and_nothing_else(table: str) -> None:
    plain, clean = re.sub("[⟨⟩]", "", table), re.sub("(?s)⟨.*?⟩", "[REDACTED:assigned_secret]", table)
    assert redact(plain) == (clean, ("assigned_secret",))
    assert redact(f"# Accounts\n\n{plain}")[0] == f"# Accounts\n\n{clean}"
    assert json.loads(redact(json.dumps({"text": plain, "x": 1}, ensure_ascii=False))[0])["text"] == clean


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_what_only_looks_like_a_column_of_passwords_stays(text: str) -> None:
    assert redact(text) == (text, ())


def test_a_table_goes_on_after_a_line_that_is_none_of_it() -> None:
    clean, _ = redact("user,password\n\nbob,Winter24zz\n# the guest\namy,19841984\n")
    assert clean == "user,password\n\nbob,{0}\n# the guest\namy,{0}\n".format("[REDACTED:assigned_secret]")


def test_what_is_found_twice_is_taken_out_once() -> None:
    text = "user,password\nbob,\"insert into t (pwd) values ('Hunter22xyz') Sommer-77\"\n"
    assert redact(text)[0] == 'user,password\nbob,"[REDACTED:assigned_secret]"\n'


def test_a_long_file_loses_every_password_and_keeps_its_rows() -> None:
    rows = [["user", "password"], *([f"user{number}", f"hunter{number}x"] for number in range(3_000))]
    file = StringIO()
    csv.writer(file).writerows(rows)
    clean = list(csv.reader(StringIO(redact(file.getvalue())[0])))
    assert [user for user, _ in clean] == [user for user, _ in rows]
    assert {password for _, password in clean[1:]} == {"[REDACTED:assigned_secret]"}


@pytest.mark.parametrize(
    "unit",
    [
        "password,",
        "password\n",
        "user  password\n",
        'user,password\n"',
        "|password|",
        "a,password\n",
        "(password) values (",
        "pwd,a\\nx\\n",
        ",".join(["a" + "._" * 23 + "a"] * 30) + ",pwd\nx\n",
        "(" + ",".join(["a" + "_" * 70 + "a"] * 26) + ",password) values('x'); ",
        "\\npassword,x",
        '"password";"',
        "kind: secret\ndata:\n",
        '"data":{',
        "auth(",
        "login: a/",
        "credentials: a:",
        "x as the password ",
        "passwords: a=",
        "password a1 to b1 ",
        "use 1234 as the pin ",
        'patch secret "data":{"a":"bcdef"}',
        '"managedfields":[ kind: secret',
    ],
)
def test_a_hostile_text_is_searched_in_time(unit: str) -> None:
    with at_most(10.0):
        secrets._redact(unit * (128 * 1024 // len(unit)))
