/** Changes to a store that break a promise of it. */
import type { ObjectStore } from '#objects/object-store.ts'

/** Puts under a condition replace what is there. */
export function ignoreConditions(store: ObjectStore): void {
  const put = inTurn(store)
  store.putIfAbsent = async (...args) => {
    await put(...args)
    return true
  }
}

/** Puts under a condition look for the object, and then put: several at once find nothing. */
export function lookBeforePut(store: ObjectStore): void {
  const put = inTurn(store)
  store.putIfAbsent = async (key, ...rest) => {
    if ((await store.head(key)) !== undefined) return false
    await put(key, ...rest)
    return true
  }
}

/** Several puts of one key share a file of a directory. */
function inTurn(store: ObjectStore): ObjectStore['put'] {
  let last = Promise.resolve()
  return (...args) => {
    last = last.then(() => store.put(...args))
    return last
  }
}
