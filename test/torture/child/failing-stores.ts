/** Buckets that fail as the steering says. */
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { overriding } from './overriding.ts'
import type { BucketFault, Steered } from './steering.ts'

export function failingStores(base: ObjectStores, steered: Steered): ObjectStores {
  return {
    open(target) {
      const store = base.open(target)
      const faultOf = (...kinds: readonly BucketFault['kind'][]) =>
        steered.now.buckets.find(
          ({ kind, bucket, share }) => kinds.includes(kind) && bucket === target.bucket && Math.random() < share,
        )
      const delay = async () => {
        const delayMs = faultOf('slow')?.delayMs ?? 0
        if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
      }
      const put = async <T>(act: () => Promise<T>): Promise<T> => {
        await delay()
        const fault = faultOf('refused', 'answer lost')
        if (fault?.kind === 'refused') throw new Error('503 SlowDown (injected)')
        const result = await act()
        if (fault?.kind === 'answer lost') throw new Error('connection reset (injected)')
        return result
      }
      const read = async <T>(act: () => Promise<T>): Promise<T> => {
        await delay()
        if (faultOf('unreadable') !== undefined) throw new ObjectStoreError('get_denied', 'get', 'AccessDenied', 'injected')
        return await act()
      }
      return overriding<ObjectStore>(store, {
        put: (...args) => put(() => store.put(...args)),
        putIfAbsent: (...args) => put(() => store.putIfAbsent(...args)),
        putFile: (...args) => put(() => store.putFile(...args)),
        get: (...args) => read(() => store.get(...args)),
        head: (...args) => read(() => store.head(...args)),
      })
    },
  }
}
