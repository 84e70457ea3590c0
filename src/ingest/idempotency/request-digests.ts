/** The digests by which a request is recognised. Which requests are known is in stored-requests.ts. */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import type { FrameInput } from '#log/frame.ts'
import { topicIn } from '#model/record-envelope.ts'

export const DIGEST_BYTES = 16

export type RequestDigests = {
  readonly endpointId: string
  /** Digest of the endpoint and the key. */
  readonly id: Buffer
  /** Digest of the records, and of their topic if they have one. */
  readonly body: Buffer
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
