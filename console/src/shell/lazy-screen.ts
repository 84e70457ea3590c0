/**
 * Screens that are loaded when they are opened.
 *
 * Law: once a part was not loaded, no further screen is taken from this page. Its style sheets are not asked for again, so a screen could
 * come without them. A new page has all of them.
 */
import { lazyRouteComponent } from '@tanstack/react-router'

export class ScreenNotLoaded extends Error {
  override readonly name = 'ScreenNotLoaded'

  constructor(cause: unknown) {
    super('This screen could not be loaded. It opens when the connection is back.', { cause })
  }
}

/** Whether a part of a screen was not loaded, in the words of the browsers. React keeps such a failure for as long as the page lives. */
export function isNotLoaded(error: unknown): boolean {
  if (error instanceof ScreenNotLoaded) return true
  return error instanceof Error && /dynamically imported module|Importing a module script|preload CSS/.test(error.message)
}

let failure: ScreenNotLoaded | undefined

export const lazyScreen: typeof lazyRouteComponent = (importer, name) =>
  lazyRouteComponent(async () => {
    if (failure !== undefined) throw failure
    try {
      return await importer()
    } catch (cause) {
      failure = new ScreenNotLoaded(cause)
      throw failure
    }
  }, name)

/** Loads the page again if control responds: without it, the browser would show an error page that stays. */
export async function reloadIfReachable(): Promise<void> {
  const isReachable = await fetch('/healthz').then(
    ({ ok }) => ok,
    () => false,
  )
  if (isReachable) window.location.reload()
}
