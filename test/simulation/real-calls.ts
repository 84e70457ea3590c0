import { createHook } from 'node:async_hooks'

/** The simulation itself waits for the next turn of the event loop, and promises. */
const ownTypes = new Set(['Immediate', 'TickObject', 'Microtask'])

/** Returns which timers, files, sockets and threads began while it ran, and where: a simulation must begin none. */
export async function findRealCalls<T>(run: () => Promise<T>): Promise<{ readonly value: T; readonly calls: readonly string[] }> {
  const calls = new Map<string, string>()
  const hook = createHook({
    trackPromises: false,
    init(_, type) {
      if (!ownTypes.has(type) && !calls.has(type)) calls.set(type, new Error(`something real ran: ${type}`).stack ?? '')
    },
  })
  hook.enable()
  try {
    return { value: await run(), calls: [...calls.values()] }
  } finally {
    hook.disable()
  }
}
