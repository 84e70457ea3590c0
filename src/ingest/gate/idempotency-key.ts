/** The key by which a sender marks a request that it may repeat. */
import { idempotencyLimits } from '#model/limits.ts'
import { Rejection } from './rejection.ts'

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
