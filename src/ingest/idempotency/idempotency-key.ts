/**
 * The key by which a sender marks a request that it may repeat.
 *
 * Owns: which keys are valid, and the digests by which a request is recognised. Does not own: which requests are known (stored-requests.ts).
 */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { FrameInput } from '#log/local/format/frame.ts'
import { idempotencyLimits } from '#model/limits.ts'
import { topicIn } from '#model/record-envelope.ts'
import { Rejection } from '../gate/rejection.ts'

export const DIGEST_BYTES = 16

export type RequestDigests = {
  readonly endpointId: string
  /** Digest of the endpoint and the key. */
  readonly id: Buffer
  /** Digest of the records, and of their topic if they have one. */
  readonly body: Buffer
}

const visibleAscii = /^[\u0021-\u007e]+$/
const quoted = /^"(.+)"$/

/** Returns the key without the quotes that the header may have around it. Throws Rejection. */
export function readIdempotencyKey(text: string): string {
  const key = quoted.exec(text)?.[1] ?? text
  if (key.length <= idempotencyLimits.keyBytesMax && visibleAscii.test(key)) return key
  throw new Rejection(
    'invalid_idempotency_key',
    `an idempotency key has 1 to ${idempotencyLimits.keyBytesMax} visible ASCII characters, such as a UUID`,
    { field: 'idempotency-key' },
  )
}

export function digestsOf(
  endpointId: string,
  key: string,
  { envelope, payload }: Pick<FrameInput, 'envelope' | 'payload'>,
): RequestDigests {
  const body = createHash('sha256')
  const topic = topicIn(envelope)
  // No topic has a NUL.
  if (topic !== undefined) body.update(`${topic}\0`)
  for (const piece of payload) body.update(piece)
  return {
    endpointId,
    id: shorten(createHash('sha256').update(`${endpointId} ${key}`).digest()),
    body: shorten(body.digest()),
  }
}

function shorten(digest: Buffer): Buffer {
  return digest.subarray(0, DIGEST_BYTES)
}
