/**
 * Answers that `public/console/start.js` asked for while the scripts of the console were still loading.
 *
 * Law: each is used once, by a call that is exactly the same, while it is fresh, and by nobody who signed in later.
 */

/** By account and path. */
type Asked = Map<string, Promise<Response>>

declare global {
  interface Window {
    inletAskedAhead?: Asked
  }
}

/** As old as an answer may be. A screen with older data looks wrong until it asks again. */
const freshMs = 10_000

/** Returns the answer to this call, if it was asked for already. The page began at 0 ms. */
export function takeAskedAhead(
  method: string,
  account: string,
  path: string,
  nowMs = performance.now(),
): Promise<Response> | undefined {
  const asked = window.inletAskedAhead
  if (asked === undefined) return undefined
  const key = `${account} ${path}`
  const answer = asked.get(key)
  asked.delete(key)
  return method === 'GET' && nowMs < freshMs ? answer : undefined
}

/** Forgets all answers, because they may be about somebody else. */
export function forgetAskedAhead(): void {
  delete window.inletAskedAhead
}
