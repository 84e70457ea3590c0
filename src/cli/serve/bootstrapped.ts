import { fieldsOf } from '#node/child-messages.ts'

/** Message from control to its supervisor after it created the first account. */
export type Bootstrapped = {
  /** Null if the operator provided the key. */
  readonly api_key: string | null
  readonly endpoint_id: string
  /** How long until a record is in the bucket, at most. */
  readonly segment_max_age_seconds: number
}

/** Returns undefined for any other message. */
export function readBootstrapped(message: unknown): Bootstrapped | undefined {
  const { type, api_key, endpoint_id, segment_max_age_seconds } = fieldsOf(message)
  if (type !== 'bootstrapped' || typeof endpoint_id !== 'string' || typeof segment_max_age_seconds !== 'number') return undefined
  return { api_key: typeof api_key === 'string' ? api_key : null, endpoint_id, segment_max_age_seconds }
}

/** Reads the message from control that nobody has signed in to the console yet. Returns undefined for any other message. */
export function readFirstLink(message: unknown): string | undefined {
  const { type, url } = fieldsOf(message)
  return type === 'first_link' && typeof url === 'string' ? url : undefined
}
