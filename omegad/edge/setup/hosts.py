"""The hosts: which files each of them reads, and what an entry looks like there. Facts only; nothing here
does anything.

A path begins with the name of a root in braces, see `ROOTS`; one of a project is relative to it.
"""

from typing import Literal, NamedTuple

What = Literal["hooks", "mcp", "instructions", "plugin"]
Format = Literal["json", "toml", "markdown", "javascript"]


class Root(NamedTuple):
    """A folder that paths begin with: the variable that moves it, and where it is otherwise."""

    variable: str
    linux: str
    macos: str = ""
    """Where it is on macOS, and not moved there, if that is elsewhere."""


ROOTS = {
    "home": Root("", "~"),
    "config": Root("XDG_CONFIG_HOME", "~/.config"),
    "apps": Root("XDG_CONFIG_HOME", "~/.config", "~/Library/Application Support"),
    "claude": Root("CLAUDE_CONFIG_DIR", "~/.claude"),
    "claude_state": Root("CLAUDE_CONFIG_DIR", "~"),
    "codex": Root("CODEX_HOME", "~/.codex"),
    "copilot": Root("COPILOT_HOME", "~/.copilot"),
}


class Hook(NamedTuple):
    """An event as the host calls it, how long its hook may take, and which tools it is about: all where
    empty.
    """

    event: str
    timeout_s: int = 5  # the client itself gives up after half a second at most
    matcher: str = ""
    more: tuple[tuple[str, object], ...] = ()
    """What else the host is told of it."""


class HookShape(NamedTuple):
    """What a hook looks like in the list of its event."""

    timeouts: tuple[tuple[str, int], ...] = (("timeout", 1),)
    """The names of the field, and how many of its units a second has."""
    is_grouped: bool = True
    """Whether hooks lie in groups, each with a matcher."""
    fixed: tuple[tuple[str, str], ...] = (("type", "command"),)


class ServerShape(NamedTuple):
    """What an MCP server looks like, and the key of the object that holds them by name."""

    key: str = "mcpServers"
    fixed: tuple[tuple[str, object], ...] = ()
    is_one_list: bool = False
    """Whether command and arguments are one list."""


class File(NamedTuple):
    """One file of a host, and what of omegad's goes there."""

    what: tuple[What, ...]
    format: Format
    user: tuple[str, ...] = ()
    """Where it is for the person, the first of these that exists, else the first; nowhere where empty."""
    project: str = ""
    """Where it is for one project; nowhere where empty."""
    fixed: tuple[tuple[str, object], ...] = ()
    """What the document needs beside omegad's entries."""
    is_own: bool = False
    """Whether the file is there for omegad alone."""
    head: str = ""
    """What a file of omegad's own begins with."""


class Host(NamedTuple):
    """A coding agent."""

    name: str
    title: str
    traces: tuple[str, ...]
    """Files and folders, and names of programs, of which one is there where it is installed."""
    files: tuple[File, ...]
    hooks: tuple[Hook, ...] = ()
    hook_shape: HookShape = HookShape()
    server_shape: ServerShape = ServerShape()
    steps: tuple[str, ...] = ()
    """What its person has left to do."""


GUARD_S = 30  # the push guard may take 20 s
OF_SERVERS = (
    "([Ee]dit|[Ww]rite|[Cc]reate|[Rr]eplace|[Ii]nsert|[Aa]ppend|[Pp]atch|[Uu]pdate|[Mm]odify|[Ss]ave"
    "|[Dd]elete|[Rr]emove|[Rr]ename|[Mm]ove).*"
)
"""What the tools of MCP servers have in their names that may change files, so that others cost nothing."""
LAST_S = 3  # at the end of a session, where hosts wait for no more

CLAUDE_HOOKS = (
    Hook("SessionStart"),
    Hook("UserPromptSubmit"),
    Hook("PreToolUse", GUARD_S, "Agent|Task|Edit|MultiEdit|NotebookEdit|Write"),
    Hook("PreToolUse", GUARD_S, f"mcp__.*{OF_SERVERS}"),
    *(
        Hook("PreToolUse", GUARD_S, "Bash", (("if", f"Bash(*{word}*)"),)) for word in ("push", "rm ", "mv ")
    ),  # the host itself looks, at no cost
    # What an asynchronous hook has to say of a subagent's work, Claude Code tells the session's own agent. It
    # is said outright, since setup leaves members that it does not name as earlier versions wrote them.
    Hook("PostToolUse", more=(("async", False),)),
    Hook("PostToolUseFailure"),
    Hook("PreCompact"),
    Hook("SubagentStart"),
    Hook("SubagentStop"),
    Hook("Stop"),
    Hook("SessionEnd", LAST_S),
)
CODEX_HOOKS = (
    Hook("SessionStart"),
    Hook("UserPromptSubmit"),
    Hook("PreToolUse", GUARD_S, "Bash|apply_patch"),
    Hook("PreToolUse", GUARD_S, f"mcp__.*{OF_SERVERS}"),
    Hook("PostToolUse"),
    Hook("PreCompact"),
    Hook("SubagentStop"),
    Hook("Stop"),
    Hook("SessionEnd", LAST_S),
)
CURSOR_HOOKS = (
    Hook("sessionStart"),
    Hook("beforeSubmitPrompt"),
    Hook("preToolUse", GUARD_S),
    Hook("postToolUse"),
    Hook("postToolUseFailure"),
    Hook("preCompact"),
    Hook("subagentStop"),
    Hook("stop"),
    Hook("sessionEnd", LAST_S),
)
GEMINI_HOOKS = (
    Hook("SessionStart"),
    Hook("BeforeAgent"),
    Hook("BeforeTool", GUARD_S, "run_shell_command|replace|write_file"),
    Hook("BeforeTool", GUARD_S, f"(mcp_|__).*{OF_SERVERS}"),
    Hook("AfterTool"),
    Hook("AfterAgent"),  # PreCompress comes before every request, whether it compresses or not
    Hook("SessionEnd", LAST_S),
)
COPILOT_HOOKS = (
    Hook("SessionStart"),
    Hook("UserPromptSubmit"),
    Hook("PreToolUse", GUARD_S),
    Hook("PostToolUse"),
    Hook("PreCompact"),
    Hook("SubagentStop"),
    Hook("Stop"),
    Hook("SessionEnd", LAST_S),
)
DEVIN_HOOKS = (
    Hook("SessionStart"),
    Hook("UserPromptSubmit"),
    Hook("PreToolUse", GUARD_S),
    Hook("PostToolUse"),
    Hook("Stop"),
    Hook("SessionEnd", LAST_S),
)

COPILOT_SHAPE = HookShape(
    timeouts=(("timeout", 1), ("timeoutSec", 1)), is_grouped=False
)  # the one is VS Code's, the other Copilot CLI's
COPILOT_FILE = File(
    ("hooks",),
    "json",
    ("{copilot}/hooks/omegad.json",),
    ".github/hooks/omegad.json",
    fixed=(("version", 1),),
    is_own=True,
)

ALL = (
    Host(
        "claude-code",
        "Claude Code",
        ("{claude}", "{claude_state}/.claude.json", "claude"),
        (
            File(("hooks",), "json", ("{claude}/settings.json",), ".claude/settings.local.json"),
            File(("mcp",), "json", ("{claude_state}/.claude.json",), ".mcp.json"),
            File(
                ("instructions",),
                "markdown",
                ("{claude}/rules/omegad.md",),
                ".claude/rules/omegad.md",
                is_own=True,
            ),
        ),
        CLAUDE_HOOKS,
        server_shape=ServerShape(fixed=(("type", "stdio"),)),
        steps=(
            (
                "start `claude` anew; it runs hooks in folders that you have told it to trust (`/hooks` and"
                " `/mcp` show what it has read)"
            ),
        ),
    ),
    Host(
        "codex",
        "Codex",
        ("{codex}", "codex"),
        (
            File(("hooks",), "json", ("{codex}/hooks.json",), ".codex/hooks.json"),
            File(("mcp",), "toml", ("{codex}/config.toml",), ".codex/config.toml"),
            File(("instructions",), "markdown", ("{codex}/AGENTS.md",), "AGENTS.md"),
        ),
        CODEX_HOOKS,
        steps=(
            (
                "start `codex`, type `/hooks` and approve those of omegad: until then Codex skips them, and"
                " again after they change"
            ),
        ),
    ),
    Host(
        "cursor",
        "Cursor",
        ("{home}/.cursor", "cursor", "cursor-agent"),
        (
            File(
                ("hooks",),
                "json",
                ("{home}/.cursor/hooks.json",),
                ".cursor/hooks.json",
                fixed=(("version", 1),),
            ),
            File(("mcp",), "json", ("{home}/.cursor/mcp.json",), ".cursor/mcp.json"),
            File(
                ("instructions",),
                "markdown",
                (),
                ".cursor/rules/omegad.mdc",
                is_own=True,
                head="---\nalwaysApply: true\n---\n",
            ),
        ),
        CURSOR_HOOKS,
        HookShape(is_grouped=False, fixed=()),
        steps=(
            "restart Cursor, and switch `omegad` on in Settings → MCP; hooks are listed in Settings → Hooks",
        ),
    ),
    Host(
        "gemini",
        "Gemini CLI",
        ("{home}/.gemini", "gemini"),
        (
            File(("hooks", "mcp"), "json", ("{home}/.gemini/settings.json",), ".gemini/settings.json"),
            File(("instructions",), "markdown", ("{home}/.gemini/GEMINI.md",), "GEMINI.md"),
        ),
        GEMINI_HOOKS,
        HookShape(timeouts=(("timeout", 1000),), fixed=(("name", "omegad"), ("type", "command"))),
        steps=(
            (
                "start `gemini` anew, and trust the folder you work in (`/permissions`): in others it starts"
                " no MCP server"
            ),
        ),
    ),
    Host(
        "vscode",
        "VS Code",
        ("{apps}/Code/User", "code"),
        (
            COPILOT_FILE,
            File(("mcp",), "json", ("{apps}/Code/User/mcp.json",), ".vscode/mcp.json"),
            File(
                ("instructions",),
                "markdown",
                ("{apps}/Code/User/prompts/omegad.instructions.md",),
                ".github/instructions/omegad.instructions.md",
                is_own=True,
                head='---\napplyTo: "**"\n---\n',
            ),
        ),
        COPILOT_HOOKS,
        COPILOT_SHAPE,
        ServerShape("servers", (("type", "stdio"),)),
        steps=(
            (
                "run `MCP: List Servers` from the command palette, start `omegad` and trust it; hooks are a"
                " preview that an organisation may switch off"
            ),
        ),
    ),
    Host(
        "copilot",
        "Copilot CLI",
        ("{copilot}/config.json", "{copilot}/mcp-config.json", "copilot"),
        (
            COPILOT_FILE,
            File(("mcp",), "json", ("{copilot}/mcp-config.json",), ".mcp.json"),
            File(("instructions",), "markdown", ("{copilot}/copilot-instructions.md",), "AGENTS.md"),
        ),
        COPILOT_HOOKS,
        COPILOT_SHAPE,
        ServerShape(fixed=(("type", "stdio"), ("tools", ["*"]))),
        steps=("start `copilot` anew; `/mcp show omegad` lists its tools",),
    ),
    Host(
        "devin",
        "Devin Desktop",
        ("{config}/devin", "devin"),
        (
            File(("hooks",), "json", ("{config}/devin/config.json",), ".devin/config.local.json"),
            File(("mcp",), "json", ("{config}/devin/mcp_config.json",), ".devin/mcp_config.json"),
            File(("instructions",), "markdown", ("{config}/devin/AGENTS.md",), "AGENTS.md"),
        ),
        DEVIN_HOOKS,
        steps=("restart Devin, and check that `omegad` is on in its MCP settings",),
    ),
    Host(
        "zed",
        "Zed",
        ("{config}/zed", "zed", "zeditor"),
        (
            File(("mcp",), "json", ("{config}/zed/settings.json",), ".zed/settings.json"),
            File(("instructions",), "markdown", (), "AGENTS.md"),
        ),
        server_shape=ServerShape("context_servers"),
        steps=(
            (
                "Zed has no hooks: its agent remembers through the tools alone; their dot in the agent"
                " panel's settings turns green"
            ),
        ),
    ),
    Host(
        "opencode",
        "OpenCode",
        ("{config}/opencode", "opencode"),
        (
            File(
                ("mcp",),
                "json",
                ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
                "opencode.json",
            ),
            File(
                ("plugin",),
                "javascript",
                ("{config}/opencode/plugins/omegad.js",),
                ".opencode/plugins/omegad.js",
                is_own=True,
            ),
            File(("instructions",), "markdown", ("{config}/opencode/AGENTS.md",), "AGENTS.md"),
        ),
        server_shape=ServerShape("mcp", (("type", "local"), ("enabled", True)), is_one_list=True),
        steps=("start `opencode` anew",),
    ),
)
BY_NAME = {host.name: host for host in ALL}
