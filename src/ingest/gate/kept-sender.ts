import { maskAddress } from '#lib/ip-addresses.ts'
import type { KeptField } from '#model/kept-fields.ts'
import type { RecordEnvelope } from '#model/record-envelope.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'

/** Facts about a sender that an endpoint keeps, as the envelope has them. */
export type KeptSender = Pick<RecordEnvelope, 'address' | 'key_name'>

/** Finds the facts. Called only for those that the endpoint keeps. */
export type SenderFields = {
  readonly address: () => string | undefined
  readonly keyName: () => string | undefined
}

/** Returns the facts that the endpoint keeps; undefined if there are none. A whole address leaves this function only if the endpoint keeps it whole. */
export function keptSenderOf(
  { kept_fields }: Pick<SnapshotEndpoint, 'kept_fields'>,
  sender: SenderFields,
): KeptSender | undefined {
  if (kept_fields.length === 0) return undefined
  const keeps = (field: KeptField) => kept_fields.includes(field)
  const isMasked = keeps('address_masked')
  const whole = isMasked || keeps('address') ? sender.address() : undefined
  const key_name = keeps('key_name') ? sender.keyName() : undefined
  if (whole === undefined && key_name === undefined) return undefined
  return {
    ...(whole === undefined ? {} : { address: isMasked ? maskAddress(whole) : whole }),
    ...(key_name === undefined ? {} : { key_name }),
  }
}
