"""The verbs of sharing that ask no method, or several."""

from omegad.requests.verb import Option, Verb

ADDRESS = "postgresql://LOGIN@HOST/DATABASE"
PASSWORD_FILE = Option("password-file", "a file with the login's password alone")
OF_POST = (
    Option("url", f"where the post is, and as which administrator: {ADDRESS}"),
    Option("team", "which team; the only one where left out"),
    PASSWORD_FILE,
)
PASSWORD_TO = Option("password-to", "write the person's password to this new file, and do not show it")
LOGIN = Option("login", "the login that is made for the person; of their name where left out")

SHARING = (
    Verb(
        "share init",
        "team.init",
        about=(
            "Make a PostgreSQL database the post of a team, with its first member, or upgrade one; as an"
            " administrator of the database"
        ),
        options=(
            Option("url", f"the database, and as which administrator: {ADDRESS}", is_given=True),
            Option("team", "the team to make; none where left out, as for an upgrade"),
            Option("person", "its first member, who administers it, as others are shown"),
            LOGIN,
            PASSWORD_TO,
            PASSWORD_FILE,
        ),
        examples=(
            "omegad share init postgresql://postgres@db.example.com/omegad --team crew --person Ann",
            "omegad share init 'postgresql://postgres@/omegad?host=/var/run/postgresql'",
        ),
    ),
    Verb(
        "share member add",
        "team.add",
        about="Invite a person to a team: make their login, and print what they join with",
        options=(
            Option("person", "who, as others are shown", is_given=True),
            Option("admin", "who may erase for everyone what others stored", "flag"),
            LOGIN,
            PASSWORD_TO,
            *OF_POST,
        ),
        examples=("omegad share member add Ben --url postgresql://postgres@db.example.com/omegad",),
    ),
    Verb(
        "share member remove",
        "team.remove",
        about="End a membership: that login reads nothing of the team from then on",
        options=(Option("person", "who, by name or login", is_given=True), *OF_POST),
        examples=("omegad share member remove Ben --url postgresql://postgres@db.example.com/omegad",),
    ),
    Verb(
        "share member list",
        "team.members",
        about="List who is, and was, in a team",
        options=OF_POST,
        examples=("omegad share member list --url postgresql://postgres@db.example.com/omegad",),
    ),
    Verb(
        "share join",
        "sharing.join",
        about=(
            "Have this home share with a team, as an invitation says; nothing is shared until a project is"
            " chosen. Again: with another password or address"
        ),
        options=(
            Option("url", f"of the invitation: {ADDRESS}", is_given=True),
            Option("team", "the team"),
            Option("person", "see that the login is this person's"),
            Option("machine", "how this machine is shown to others; its own name where left out"),
            Option(
                "password-file",
                "a file with the password alone; asked for, or the first line of standard input, where left"
                " out",
            ),
            Option("keyring", "keep the password in the system's keyring, not in share.toml", "flag"),
        ),
        examples=(
            "omegad share join postgresql://ann@db.example.com/omegad --team crew",
            "omegad share join postgresql://ann@db.example.com/omegad --team crew --keyring < password",
        ),
    ),
    Verb(
        "share leave",
        "sharing.leave",
        about="Share no more. What came from others stays here, and what was told stays with the team",
        options=(
            Option(
                "with-facts",
                "remove the words of all that this home told from the post, under earlier names, too",
                "flag",
            ),
        ),
        examples=("omegad share leave", "omegad share leave --with-facts"),
    ),
    Verb(
        "share retire",
        "sharing.retire",
        about=(
            "Have nobody wait any more for a home that is gone for good, as one on a lost machine: of your"
            " own, or any of the team's where you administer it"
        ),
        options=(
            Option(
                "name", "which, by its name or its machine's, as `omegad share status` shows", is_given=True
            ),
            Option("url", f"{ADDRESS}, where no home here shares"),
            Option("team", "with --url, which team; the login's only one where left out"),
            PASSWORD_FILE,
        ),
        examples=("omegad share retire laptop", "omegad share retire home-0123456789abcdef"),
    ),
    Verb(
        "share query",
        "asking_a_post.query",
        about="Find what a team holds at its post, with or without a home here, by words and by meaning",
        options=(
            Option("text", "what to look for", is_given=True),
            Option("url", f"{ADDRESS}; else OMEGAD_SHARE_URL, else where this home shares"),
            Option("team", "which team; the login's only one where left out"),
            PASSWORD_FILE,
            Option("limit", "how many at most; 10 where left out", "integer"),
            Option("mode", "hybrid, semantic, keyword or phrase, as of `omegad query`"),
            Option("all", "as many as the limit allows, however unlikely they are beside the first", "flag"),
            *(Option(name, f"with this {name}") for name in ("project", "entity", "person", "agent")),
            *(Option(name, f"with this {name}, or another given", is_many=True) for name in ("type", "tag")),
            *(Option(name, f"stored {name} this time, like 2026-01-31") for name in ("since", "until")),
        ),
        examples=('omegad share query "how do we deploy?" --url postgresql://bot@db.example.com/omegad',),
    ),
    Verb(
        "share verify",
        "sharing.verify",
        about="Prove that nothing was changed or left out of what was ever shared: at the post, and here",
    ),
    Verb(
        "share file",
        "team_file.write",
        about="Write what a team remembers of a project into a file, for those who do not run omegad",
        options=(
            Option("project", "of which project; this folder's where left out"),
            Option("into", "the file that the section is put into, or replaced in; printed where left out"),
        ),
        examples=(
            "omegad share file --into AGENTS.md",
            "omegad share file --project shop --into docs/team.md",
        ),
    ),
)
