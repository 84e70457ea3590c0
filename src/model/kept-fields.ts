/** Facts about the sender that an endpoint keeps with a record, chosen by the account. None by default: they may be personal data. */
import { z } from 'zod'

export const KeptField = z.enum(['address', 'address_masked', 'key_name'])
export type KeptField = z.infer<typeof KeptField>

export const KeptFields = z
  .array(KeptField)
  .refine((fields) => new Set(fields).size === fields.length, 'must not name a field twice')
  .refine(
    (fields) => !(fields.includes('address') && fields.includes('address_masked')),
    'must name address or address_masked, not both: a masked address is to replace the whole one',
  )
  .meta({
    description:
      'what is kept of the sender of each record: the `address` of the client, or only its network (`address_masked`: the last octet of IPv4 and the last 80 bits of IPv6 are zero), both as `$$.address` in views, and the name of the API key (`key_name`, `$$.key_name`). An address is personal data in many countries',
    examples: [['address_masked', 'key_name']],
    uniqueItems: true,
  })
