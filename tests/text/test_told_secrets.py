"""Passwords, PINs and numbers of cards as people write them to each other, in any language."""

# ruff: noqa: RUF001  letters that look like others are what it is about

import json
import re

import pytest

from omegad.text.redaction import cards, redact, redact_name, secrets, spoken
from tests.text.test_secrets import PARSER, repeats

# The secret stands between ⟨ and ⟩; ~ is a line's end.
TOLD = """
Kennwort: ⟨Sommer2023⟩¦Zugangscode = ⟨a8s7d6f5⟩¦Passwort für den Server: ⟨Xk29!abz⟩
Das Passwort ist ⟨hunter2geheim⟩¦PASSWORT=⟨hunter2x⟩¦<b>Passwort:</b> ⟨hunter2x⟩
mot de passe: ⟨hunter2geheim⟩¦Mot de passe : ⟨Azerty123!⟩¦le mot de passe est ⟨Soleil2024⟩
mdp: ⟨toto1234⟩¦MOT_DE_PASSE=⟨hunter2x⟩¦motDePasse: '⟨hunter2x⟩'¦mot de passe:~⟨Soleil2024⟩
contraseña: ⟨Perro123⟩¦Contraseña = ⟨gato_2020⟩¦la contraseña es ⟨Madrid2024!⟩¦contrasena: ⟨secreto99⟩
contraseña de la base de datos: ⟨pg_S3creta⟩¦"contraseña": "⟨Abc12345⟩"¦clave: ⟨M1clave2020⟩
la password è ⟨Roma2024!⟩¦parola d'ordine: ⟨Venezia88⟩¦Password del database: ⟨Gatto2024!⟩
senha: ⟨Brasil2014⟩¦palavra-passe: ⟨Lisboa1755⟩¦DB_SENHA=⟨cafe1234⟩¦{"senha":"⟨Brasil2014⟩"}
senha:~  ⟨Brasil2014⟩¦wachtwoord: ⟨Fiets2023⟩¦wachtwoord = ⟨tulp99!⟩¦**Wachtwoord:** ⟨Fiets2023⟩
hasło: ⟨Zima2024!⟩¦haslo: ⟨kotek12⟩¦hasło to ⟨Warszawa44⟩¦heslo: ⟨Praha1989⟩¦lozinka: ⟨Zagreb91⟩
пароль: ⟨qwerty123⟩¦Пароль — ⟨Moskva2024⟩¦пароль: ⟨медведь77⟩¦Пароль: ⟨123456⟩
логин admin пароль ⟨Zx81spectrum⟩¦пароль до сервера: ⟨Kyiv2024!⟩¦парола: ⟨Sofia1989⟩
şifre: ⟨Ankara06!⟩¦sifre: ⟨galata1905⟩¦şifrem ⟨Istanbul34x⟩¦Parola: ⟨Boza2024⟩¦parolă: ⟨Cluj2024⟩
密码：⟨abc12345⟩¦密码是⟨Hunter2024⟩¦密碼: ⟨qwe123456⟩¦数据库密码为 ⟨root@2024⟩¦口令: ⟨Xa88#kk⟩
密码：⟨abc12345⟩，请保存¦密码：⟨１２３４５６⟩¦密码（数据库）：⟨abc12345⟩
パスワード：⟨sakura2024⟩¦パスワードは ⟨hunter2x⟩ です¦パスワードは⟨sakura2024⟩です¦パスワード: ⟨Tokyo#2020⟩
비밀번호: ⟨seoul2024!⟩¦비밀번호는 ⟨hunter2x⟩ 입니다¦암호 = ⟨busan99!⟩¦비번: ⟨1q2w3e4r⟩
كلمة المرور: ⟨Cairo2024⟩¦كلمة السر هي ⟨Nile2024x⟩¦رمز عبور: ⟨Tehran98x⟩¦סיסמה: ⟨Haifa2024⟩
पासवर्ड: ⟨Delhi2024⟩¦पासवर्ड ⟨Delhi2024⟩ है¦পাসওয়ার্ড: ⟨Dhaka1971⟩¦รหัสผ่าน: ⟨Bangkok99⟩
mật khẩu: ⟨Hanoi2024⟩¦mật khẩu là ⟨Saigon75x⟩¦mat khau: ⟨pho12345⟩¦kata sandi: ⟨Jakarta45⟩
κωδικός: ⟨Athina2004⟩¦jelszó: ⟨Budapest56⟩¦lösenord: ⟨Abba1974⟩¦salasana: ⟨Sauna100⟩
adgangskode: ⟨Lego1932⟩¦passord: ⟨Oslo1952x⟩
PIN: ⟨4821⟩¦code PIN : ⟨7391⟩¦pincode: ⟨5512⟩¦пин-код: ⟨4821⟩¦暗証番号：⟨4821⟩¦the pin is ⟨4821⟩
login(senha=⟨abc123⟩).then(x)¦[senha: ⟨a1b2c3⟩](http://x.y)¦lösenordet är ⟨Sommar2024⟩¦סיסמה ⟨abc12345⟩
"pin": "⟨7482⟩"¦cvv: ⟨737⟩¦CVC = ⟨1234⟩
**Password:** ⟨hunter2x⟩¦**Password**: `⟨hunter2x⟩`¦| Password | ⟨hunter2x⟩ |¦Password -> ⟨hunter2x⟩
Password:~⟨hunter2x9⟩¦Password:~~```~⟨hunter2x9⟩~```¦The password is:~  ⟨hunter2x9⟩¦password：⟨hunter2x⟩
The password for the staging admin is ⟨Tr0ub4dor&3x⟩¦The root password of db-2 is ⟨Blue!Horse83⟩
its password ⟨Tr0ub4dorZq1⟩ works¦what is the password ⟨Tr0ub4dorZq1?⟩
The password to the NAS is ⟨Blue!Horse83⟩¦Das Passwort für den Drucker lautet ⟨Sommer!2025x⟩
Le mot de passe du serveur est ⟨Chaton!4452⟩¦La contraseña del servidor es ⟨Gato!Negro77⟩
La password del router è ⟨Gato!Negro77⟩¦A senha é ⟨Cach0rro!9⟩¦Het wachtwoord is ⟨Fiets!2024⟩
La clave es ⟨verano2026⟩¦Das neue Passwort heißt ⟨Blau!Pferd80⟩¦The PIN of the safe is ⟨4711⟩
Die PIN ist ⟨5839⟩¦PIN for the safe: ⟨4711⟩¦Geheimzahl: ⟨4834⟩¦银行卡的密码是 ⟨638201⟩
log in with password ⟨Blue!Horse93⟩¦username: bob, password ⟨Tiger!992⟩
adgangskoden er ⟨Lego1932⟩¦passordet er ⟨Oslo1952x⟩¦Passordet til basen er ⟨Oslo1952x⟩¦kodeordet er ⟨Lego1932⟩
kodeord: ⟨Lego1932⟩¦tunnussana: ⟨Sauna100⟩¦salasanani on ⟨Sauna100⟩¦Lösenordet till basen är ⟨Sommar2024⟩
the password is ⟨sunflower-kettle-91⟩¦the password is ⟨correct-horse-battery-staple⟩
Das Passwort ist ⟨sonnen-kessel-91⟩¦The wifi password is ⟨Blue-Kettle-7-Lamp⟩.
use ⟨Sunfl0wer!9⟩ as the password¦log in with ⟨hunter2x⟩ as the admin's password for now
use the password ⟨hunter2x⟩¦use password ⟨hunter2x⟩ to log in¦with `⟨hunter2x⟩` as its password.
the admin password should be ⟨hunter2x⟩¦my password's ⟨hunter2x⟩¦set the password to ⟨hunter2x⟩
user: admin~pass: ⟨Winter2024!⟩¦Credentials: admin / ⟨winter2024⟩¦creds: bob:⟨hunter2x⟩
login: `bob@example.com` / `⟨hunter2x⟩`¦The credentials are bob:⟨hunter2x⟩
its password ⟨StintRowan86⟩¦with user greta and password ⟨walrusFrost59⟩¦root password ⟨walrusFrost60⟩ no longer works
use ⟨StintRowan86⟩ for the password¦use ⟨correct-horse-battery-staple7⟩ as the password¦use ⟨4821⟩ for the safe's PIN
The stage login is admin / ⟨StintRowan86⟩¦pass: ⟨StintRowan86⟩¦pass=⟨Stint!Rowan⟩¦PASS=⟨walrus8672⟩
the password is ⟨swordfish-Tr0ub4⟩¦The wifi password is ⟨Blue-k3ttle⟩.¦Das Passwort ist ⟨Kessel-Tr0ub4-Pferd⟩
use ⟨swordfish-Tr0ub4⟩ as the password¦Das Passwort lautet ⟨hunterzwei⟩¦Das neue Kennwort lautet: ⟨sonnenblume⟩
la contraseña es "⟨girasol⟩"¦密码是⟨abcdefgh⟩，请保存¦パスワードは⟨abcdefgh⟩です¦비밀번호는 ⟨abcdefgh⟩ 입니다
password for the db: ⟨Xk29!abz⟩¦password → ⟨hunter2x⟩¦password: &quot;⟨hunter2x⟩&quot;
"""
# Of letters alone, which nothing may follow in their line.
LETTERS = """
mot de passe: ⟨soleil⟩¦mot de passe : ⟨soleil⟩¦contraseña: ⟨girasol⟩¦Senha: ⟨girassol⟩¦palavra-passe: ⟨girassol⟩
Wachtwoord: ⟨zonnebloem⟩¦Kennwort: ⟨sonnenblume⟩¦hasło: ⟨slonecznik⟩¦пароль: ⟨подсолнух⟩¦пароль: ⟨abcdefgh⟩
密码：⟨abcdefgh⟩¦パスワード: ⟨abcdefgh⟩¦비밀번호: ⟨abcdefgh⟩¦le mot de passe est : ⟨soleil⟩¦user bob, password: ⟨walrus⟩
"""
CARDS = """
card ⟨4111 1111 1111 1111⟩¦⟨4111-1111-1111-1111⟩¦Visa: ⟨4111111111111111⟩, exp 12/27¦⟨4111.1111.1111.1111⟩
MC ⟨5500 0000 0000 0004⟩¦⟨3782 822463 10005⟩¦⟨378282246310005⟩¦{"number": "⟨4242424242424242⟩"}
⟨6011 1111 1111 1117⟩¦⟨3530 1113 3330 0000⟩¦⟨2223 0031 2200 3222⟩¦⟨3056 930902 5904⟩¦⟨6222024450423214⟩
⟨4111 1111 1111 1111⟩ 12/27 123¦number=⟨4111111111111111⟩&x=1¦Karte~⟨4111 1111 1111 1111⟩~
⟨４１１１ １１１１ １１１１ １１１１⟩¦⟨4111\u00a01111\u00a01111\u00a01111⟩¦⟨4111\u202f1111\u202f1111\u202f1111⟩
"""
LOOK_ALIKES = """
Mot de passe oublié ?¦Contraseña: obligatoria¦Contraseña: ¡Requerida!¦senha = gerar_senha1()¦$senha = $_POST['s1']
密码不能为空¦密码长度为8到20位¦パスワードは8文字以上¦비밀번호는 8자 이상¦пароль должен быть не короче 8 символов
हर पासवर्ड 8 अक्षरों का है¦palabra clave: python3-mode¦clave primaria: user_id2¦?clave=a&page=2
msgstr "Mot de passe : "¦Wachtwoord: {{wachtwoord}}¦hydra usuario=^USER^&contraseña=^PASS^
I use the password manager 1Password¦set up 1Password: 2FA comes next¦(password) => /[0-9]/.test(password)
password (see RFC 2617): sha256¦databasePassword: {{ .Values.password | b64enc | quote }}
the password policy of the group is p4-rules¦the password length is 12¦the password hash is sha256-based
The password reset flow of v2.3 is in auth_flow.py¦pin 4 of the connector is 3300¦a password field2 has no x
if (senha==user2.senha1) {¦senha:=r.FormValue("x1")¦GET /clave=1001/x¦palabras clave: seo2024¦The pin is 2000 mm long
gpio pin: 13¦led_pin = 12¦pin: 123456789¦pincode: 560001¦opinion: 1234¦pin the version 4821
the password is end-to-end-encrypted¦the password is out-of-date¦use sha256 as the password hash
with password field2 in the form¦use the password from-vault-2¦the password is base64-encoded-twice-over
the password is web-based-auth0¦the password is base64-encoded¦the password is utf8-encoded-text
Das Passwort lautet wie folgt:¦Das Passwort lautet anders.¦Le mot de passe est incorrect.¦mot de passe: obligatoire
Contraseña: requerida¦senha: string¦senha: Senha¦Kennwort: erforderlich¦密码是string类型¦密码：必填¦пароль: обязателен
(nome, senha: Senha)¦$clave: valor¦mot de passe: motDePasse¦La contraseña es segura
use user.name1 as the password¦credentials: s3://bucket/x1¦login: github.com/user1¦creds: host:8080
default password callback1 is set¦the password is one-of-the-best-kept1
keepass2 opens a password database:~~`keepass2`~~then asks¦--sftp-ask-password public1/ x
--- PASS: TestParseLines100KB¦pass: /neo4j|redis/i.test(x)¦PASS: check12b¦pass=test_pass2¦pass=pass1¦compass: Xk29abz
the password from v1 to v2¦Passwords: min=8, max=64¦passwords: hash=sha256¦use 4821 as the port
the password sha256Sum is logged¦the password Base64V2Codec is new¦the password fieldName1 is read¦its password MD5 or SHA512 hash
4111 1111 1111 1112¦1764150000000000¦1764150000¦2024 2025 2026 2027¦id: 4111111111111111¦"userId":"4111111111111111"
0.4111111111111111¦a4111111111111111¦#4111111111111111¦/4111111111111111¦4111 1111 1111 1111 1111¦+4111111111111111
Q 4111 1111 1111 1111¦12 4111 1111 1111 1111 5¦"x": 4447.066710062815¦2592000000000000¦+49 30 4111 1111
4111111111111111-1111¦550e8400-4111-1111-1111-111111111111
"""
MARK = re.compile(r"\[REDACTED:(\w+)\]")


def examples(text: str) -> list[str]:
    return [one.replace("~", "\n") for line in text.strip().splitlines() for one in line.split("¦")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "assigned_secret") for text in examples(TOLD)),
        *((text, "payment_card") for text in examples(CARDS)),
    ],
)
def test_what_people_tell_each_other_is_taken_out_and_nothing_around_it(text: str, kind: str) -> None:
    before, secret, after = re.split("[⟨⟩]", text)
    for start, end in [("", ""), ("# Zugang\n\n", "\n\nThen restart the service."), ("« ", " »")]:
        whole = f"{start}{before}{secret}{after}{end}"
        assert redact(whole) == (f"{start}{before}[REDACTED:{kind}]{after}{end}", (kind,))


@pytest.mark.parametrize("text", examples(LETTERS))
def test_letters_alone_are_taken_out_at_the_end_of_a_line(text: str) -> None:
    before, secret, after = re.split("[⟨⟩]", text)
    for end in ("", "\n\nThen restart the service.", "\r\n"):
        assert redact(f"{before}{secret}{after}{end}") == (
            f"{before}[REDACTED:assigned_secret]{after}{end}",
            ("assigned_secret",),
        )


@pytest.mark.parametrize("text", examples(LOOK_ALIKES))
def test_what_only_looks_like_it_stays(text: str) -> None:
    for whole in (text, f"see `{text}`, 然后", f"# Notes\n\n{text}\n\nThe rest follows."):
        assert redact(whole) == (whole, ())


@pytest.mark.parametrize(
    "text",
    [
        "pass\u200bword: hunter2x",
        "password: \u200bhunter2x",
        "se\u200dnha: hun\u2060ter2x",
        "4111 1111\u200b 1111 1111",
    ],
)
def test_what_no_reader_sees_hides_no_secret(text: str) -> None:
    assert re.search(r"unter2x|er2x|1111 ", redact(text)[0]) is None
    for plain in ("👩\u200d💻 wrote a test", "نمی\u200cخواهم"):
        assert redact(plain) == (plain, ())
        assert redact(f"{plain}, {text}")[0].startswith(plain)


@pytest.mark.parametrize(
    "text",
    [
        "password ⟨hunter2⟩ was changed to ⟨JackdawPine02⟩",
        "We changed the password from `⟨hunter2⟩` to `⟨JackdawPine02⟩`.",
        "Passwords: anna=⟨StintRowan86⟩, bob=⟨JackdawPine02⟩.",
        "passwords: anna: ⟨StintRowan86⟩ and bob: ⟨JackdawPine02⟩",
        "use ⟨4821⟩ as the PIN and ⟨StintRowan86⟩ as the password",
    ],
)
def test_of_several_in_a_sentence_each_is_taken_out(text: str) -> None:
    assert redact(re.sub("[⟨⟩]", "", text))[0] == re.sub("⟨.*?⟩", "[REDACTED:assigned_secret]", text)


def test_a_name_of_digits_stays() -> None:
    assert redact_name("4111111111111111") == "4111111111111111"


@pytest.mark.parametrize("pattern", [spoken.NAMED, *cards.NUMBERS])
def test_their_patterns_cost_a_bounded_number_of_steps(pattern: re.Pattern[str]) -> None:
    assert all(times <= 4000 for times, _ in repeats(PARSER.parse(pattern.pattern)))


def test_no_word_is_passed_over() -> None:
    """What a text is first searched for stands in every one of the words."""
    for word in spoken.STEMS:
        value = "4821" if word in spoken.WORDS.pins else "hunter2x"
        for sign in (": ", " = ", "**: ", '": "', "：", ":\n"):
            assert value not in secrets._redact(f"x {word}{sign}{value}\n")[0], (word, sign)


@pytest.mark.parametrize(
    "said",
    [
        '{"pin": 1021, "x": [1]}',
        '{"cvv":123}',
        '{"number": 4111111111111111}',
        "[4111111111111111]",
        '{"a": [1, [4111111111111111, 5500000000000004]], "b": ["x", 378282246310005]}',
        '{"number":\n    4111111111111111}',
        '{"text": "[4111111111111111, 5500000000000004]", "x": [4111111111111111]}',
        json.dumps({"a": json.dumps({"b": [1, 4111111111111111], "c": json.dumps([4111111111111111])})}),
        """["mysql -p'walrusfrost", "it's"]""",
        """["mysql -p'walrusfrost", "next"]""",
        r"""{"a": "mysql -p\"walrusfrost", "b": "say \"x\""}""",
        """["export PASSWORD='walrusfrost", "it's"]""",
    ],
)
def test_what_was_json_is_json_still(said: str) -> None:
    clean, found = redact(said)
    assert found
    assert len(json.loads(clean)) == len(json.loads(said))
    assert "walrus" not in clean
    assert redact(clean)[0] == clean
