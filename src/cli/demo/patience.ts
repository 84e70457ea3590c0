import { type Clock, sleep } from '#lib/clock.ts'

/** On a busy machine a step may take minutes. After this, something is wrong. */
export const patienceMs = 600_000

/** Well below the rate limit of the management API. */
const pollMs = 100

/** Polls until `check` returns undefined. Until then it returns what is missing. */
export async function waitFor(what: string, check: () => Promise<string | undefined>, clock: Clock): Promise<void> {
  const deadline = clock.monotonic() + patienceMs
  for (;;) {
    const missing = await check()
    if (missing === undefined) return
    if (clock.monotonic() > deadline)
      throw new Error(`gave up waiting for ${what} after ${patienceMs / 60_000} minutes: ${missing}`)
    await sleep(clock, pollMs)
  }
}
