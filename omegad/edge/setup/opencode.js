// Passes OpenCode's events to omegad and what it remembers to the model. A hook that fails or is slow changes nothing.
import { spawn } from "node:child_process"

const COMMAND = COMMAND_WORDS
const WAIT_MS = 2000
const SESSIONS_MAX = 100

function ask(event, payload) {
  return new Promise((resolve) => {
    let printed = ""
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), WAIT_MS)
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(printed).hookSpecificOutput?.additionalContext ?? "")
      } catch {
        resolve("")
      }
    }
    child.on("error", done)
    child.on("close", done)
    child.stdin.on("error", () => {})
    child.stdout.on("data", (chunk) => (printed += chunk))
    child.stdin.end(JSON.stringify({ ...payload, hook_event_name: event, host: "opencode" }))
  })
}

export const Omegad = async ({ directory }) => {
  const sessions = new Map() // what the model is told of, by session: at its start, and with the last prompt
  const about = (id) => ({ session_id: id, transcript_path: null, cwd: directory })
  const start = async (id, source) => {
    if (sessions.size >= SESSIONS_MAX) sessions.delete(sessions.keys().next().value)
    const told = { start: await ask("SessionStart", { ...about(id), source }), prompt: "" }
    sessions.set(id, told)
    return told
  }
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      const told = sessions.get(sessionID) ?? (await start(sessionID, "startup"))
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      told.prompt = await ask("UserPromptSubmit", { ...about(sessionID), prompt: prompt.join("\n") })
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const told = sessions.get(sessionID)
      const context = [told?.start, told?.prompt].filter(Boolean).join("\n\n")
      if (context) output.system[0] = [output.system[0], context].filter(Boolean).join("\n\n")
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const payload = { tool_name: tool, tool_use_id: callID, tool_input: args ?? {}, tool_response: output.output ?? "" }
      const context = await ask("PostToolUse", { ...about(sessionID), ...payload })
      if (context && typeof output.output === "string") output.output += `\n\n${context}`
    },
    "experimental.session.compacting": async ({ sessionID }, output) => {
      const context = await ask("PreCompact", { ...about(sessionID), trigger: "auto" })
      if (context) output.context.push(context)
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.idle") await ask("Stop", about(id))
      if (event.type === "session.compacted") await start(id, "compact")
      if (event.type === "session.deleted") {
        sessions.delete(id)
        await ask("SessionEnd", { ...about(id), reason: "other" })
      }
    },
  }
}
