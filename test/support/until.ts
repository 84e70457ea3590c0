// A deployment that is not ours limits the requests per minute.
const isRemote = process.env['INLET_E2E_CONTROL_URL'] !== undefined
const [firstPauseMs, longestPauseMs] = isRemote ? [50, 1_000] : [5, 50]

/**
 * Waits for a condition. Throws an error with its name at the timeout. Polls often at first and less often later, so that a test does
 * not take the processor from the process it waits for.
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, timeoutMs = 30_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (let pauseMs = firstPauseMs; !(await condition()); pauseMs = Math.min(pauseMs * 1.3, longestPauseMs)) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}
