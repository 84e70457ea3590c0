type Search = Record<string, unknown>

/**
 * Lets a screen see of its address only what `read` returns. The router keeps what a validator leaves out, so that a value which must not
 * pass would reach the screen all the same.
 */
export function onlyKnown<Known extends object>(read: (search: Search) => Known): (search: Search) => Known {
  return (search) => ({ ...Object.fromEntries(Object.keys(search).map((name) => [name, undefined])), ...read(search) })
}
