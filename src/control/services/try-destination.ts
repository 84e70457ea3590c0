import { randomUUID } from 'node:crypto'
import type { DestinationTarget } from '#model/destination.ts'
import { controlLimits } from '#model/limits.ts'
import type { ObjectStore, ObjectStores } from '#objects/object-store.ts'

/**
 * Writes and deletes a test object under the prefix. Answers null, or a sentence that a person can act on: which step failed,
 * how the store put it, what to check.
 */
export async function tryDestination(objectStores: ObjectStores, destination: DestinationTarget): Promise<string | null> {
  const { bucket, prefix } = destination
  const key = [prefix, `.inlet-validation-${randomUUID()}`].filter((part) => part !== '').join('/')
  const body = Buffer.from('Written by Inlet to validate this destination. It can be deleted.\n')
  let objects: ObjectStore
  try {
    objects = objectStores.open(destination)
  } catch (error) {
    return `bucket ${bucket} cannot be opened (${nameOf(error)}); check bucket, region and role`
  }
  try {
    await objects.put(key, body, { contentType: 'text/plain', metadata: {}, signal: timeout() })
  } catch (error) {
    return `writing ${key} to bucket ${bucket} failed (${nameOf(error)}); check that the role exists, trusts this service with the external id, and may put objects there`
  }
  try {
    await objects.remove(key, timeout())
  } catch (error) {
    return `deleting ${key} from bucket ${bucket} failed (${nameOf(error)}); check that the role may delete objects there`
  }
  return null
}

const timeout = (): AbortSignal => AbortSignal.timeout(controlLimits.validationTimeoutMs)

/** The code of the store or the system, never the message: that may hold paths and addresses of this machine. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.name
}
