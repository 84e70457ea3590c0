import type { ObjectStore } from '#objects/object-store.ts'
import { isReadDenied } from '#objects/store-error.ts'

/** A role may be allowed to write but not to read, or to read but not to write. */
export type Access = 'read' | 'write'

/** A bucket as a stage sees it. Its creator decides when a request may be sent and how a failure is recorded. */
export interface Bucket {
  request<T>(access: Access, send: (store: ObjectStore) => Promise<T>): Promise<T>
}

/** Returns the result of `read`, or `otherwise` if the role may not read. */
export async function unlessReadDenied<T>(read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!isReadDenied(error)) throw error
    return otherwise
  }
}
