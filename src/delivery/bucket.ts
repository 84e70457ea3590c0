import type { ObjectStore } from '#objects/object-store.ts'
import { isReadDenied } from '#objects/store-error.ts'

/** A role may be allowed to write and not to read, or the other way round. */
export type Access = 'read' | 'write'

/** A bucket as a stage sees it. Whoever opened it decides when a request may be sent and what a failure means. */
export interface Bucket {
  request<T>(access: Access, send: (store: ObjectStore) => Promise<T>): Promise<T>
}

/** Returns what was read, or `otherwise` if the role may not read. */
export async function unlessReadDenied<T>(read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isReadDenied(error)) throw error
    return otherwise
  }
}
