import { fieldsOf } from '#node/child-messages.ts'

/** Message from control to its supervisor after it created the first account. */
export type Bootstrapped = {
  /** Null if the operator provided the key. */
  readonly api_key: string | null
  readonly endpoint_id: string
}

/** Returns undefined for any other message. */
export function readBootstrapped(message: unknown): Bootstrapped | undefined {
  const { type, api_key, endpoint_id } = fieldsOf(message)
  if (type !== 'bootstrapped' || typeof endpoint_id !== 'string') return undefined
  return { api_key: typeof api_key === 'string' ? api_key : null, endpoint_id }
}
