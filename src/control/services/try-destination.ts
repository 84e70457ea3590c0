import type { DestinationTarget } from '#model/destination.ts'
import type { BucketTarget, ObjectStore, ObjectStores } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { controlLimits } from '../limits.ts'

/**
 * Assumes the role, writes a test object under the prefix and deletes it. Returns null, or a message: which step failed, the
 * store's error, what to check. Does not use a cached session.
 */
export async function tryDestination(
  objectStores: ObjectStores,
  destination: DestinationTarget & Pick<BucketTarget, 'session'>,
): Promise<string | null> {
  const { bucket, prefix } = destination
  // The same key each time: if deleting is not allowed, only one object stays behind.
  const key = [prefix, `.inlet-validation-${destination.id}`].filter((part) => part !== '').join('/')
  const body = Buffer.from('Written by Inlet to validate this destination. It can be deleted.\n')
  let objects: ObjectStore
  try {
    objects = objectStores.open(destination, { fresh: true })
  } catch (error) {
    return describeFailure(`opening bucket ${bucket} failed`, error)
  }
  try {
    await objects.put(key, body, { contentType: 'text/plain', metadata: {}, signal: timeout() })
  } catch (error) {
    return describeFailure(`writing ${key} to bucket ${bucket} failed`, error)
  }
  try {
    await objects.remove(key, timeout())
  } catch (error) {
    return describeFailure(`deleting ${key} from bucket ${bucket} failed`, error)
  }
  return null
}

const timeout = (): AbortSignal => AbortSignal.timeout(controlLimits.validationTimeoutMs)

/** Returns the message of a store error. Other errors contribute only their name: their message may contain local paths and addresses. */
function describeFailure(what: string, error: unknown): string {
  if (error instanceof ObjectStoreError) return error.message
  return `${what} (${nameOf(error)}); check that this installation can write there`
}

function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  if ('code' in error && typeof error.code === 'string') return error.code
  return error.name
}
