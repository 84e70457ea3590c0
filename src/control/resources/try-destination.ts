import type { DestinationTarget } from '#model/destination.ts'
import type { ValidationStep } from '#model/destination-validation.ts'
import type { StoreTraits } from '#model/object-store.ts'
import type { BucketTarget, ObjectStores } from '#objects/object-store.ts'
import { ObjectStoreError } from '#objects/store-error.ts'
import { ValidationFindings } from './validation-findings.ts'

/**
 * Assumes the role or looks into the allowlist, and does to a test object under the prefix what delivery and jobs do: write, list, read, upload in parts, delete. Returns
 * what came of each step. Does not use a cached session.
 */
export async function tryDestination(
  objectStores: ObjectStores,
  store: StoreTraits,
  destination: DestinationTarget & Pick<BucketTarget, 'session'>,
): Promise<readonly ValidationStep[]> {
  const { bucket, prefix, id } = destination
  // The same key each time: if deleting is not allowed, only one object stays behind.
  const key = [prefix, `.inlet-validation-${id}`].filter((part) => part !== '').join('/')
  const body = Buffer.from('Written by Inlet to validate this destination. It can be deleted.\n')
  const object = { contentType: 'text/plain', metadata: {} }
  const findings = new ValidationFindings(store, destination)

  const objects = await findings.try('write', `writing ${key} to bucket ${bucket} failed`, async (signal) => {
    const opened = objectStores.open(destination, { fresh: true })
    await opened.put(key, body, { ...object, signal })
    return opened
  })
  if (objects === undefined) return findings.steps()

  await findings.try('list', `listing ${key} in bucket ${bucket} failed`, async (signal) => {
    for await (const _ of objects.list(key, signal)) break
  })
  await findings.try('read', `reading ${key} in bucket ${bucket} failed`, async (signal) => {
    const found = await objects.get(key, signal)
    if (found === undefined || !body.equals(found)) throw wrongContent(bucket)
  })
  await findings.try('if_absent', `writing ${key} to bucket ${bucket} under a condition failed`, async (signal) => {
    if (await objects.putIfAbsent(key, body, { ...object, signal })) throw conditionIgnored(bucket)
  })
  await findings.try(
    'multipart',
    `uploading ${key} in parts to bucket ${bucket} failed`,
    async (signal) => await objects.tryParts?.(key, { ...object, signal }),
  )
  await findings.try('delete', `deleting ${key} from bucket ${bucket} failed`, (signal) => objects.remove(key, signal))
  return findings.steps()
}

/** Returns what keeps the destination pending, or null if it is valid. */
export function failureOf(steps: readonly ValidationStep[]): string | null {
  return steps.find(({ outcome }) => outcome === 'failed')?.message ?? null
}

function wrongContent(bucket: string): ObjectStoreError {
  const advice = 'the store does not return what was written; look for a rule or a program that changes or removes objects'
  return new ObjectStoreError('refused', 'get', 'WrongContent', `reading in bucket ${bucket} failed (WrongContent): ${advice}`)
}

function conditionIgnored(bucket: string): ObjectStoreError {
  const problem = 'the store replaced an object although it was told not to (If-None-Match)'
  return new ObjectStoreError(
    'condition_refused',
    'put_if_absent',
    'Replaced',
    `writing in bucket ${bucket} failed (Replaced): ${problem}`,
  )
}
