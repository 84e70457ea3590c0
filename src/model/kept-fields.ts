/** Facts about the sender that an endpoint keeps with a record, chosen by the account. None by default: they may be personal data. */
import { z } from 'zod'
import type { Definition } from './definition.ts'

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

/** Returns a warning for each fact that a definition reads and the endpoint does not keep. */
export function factsNotKept({ columns, filters = [] }: Definition, kept: readonly string[]): readonly string[] {
  const expressions = [...columns.map(({ value = '' }) => value), ...filters.map(({ condition }) => condition)]
  const reads = (field: string): boolean =>
    columns.some(({ path }) => path?.trim() === `$$.${field}`) ||
    expressions.some((text) => new RegExp(`\\$\\$\\.${field}\\b`).test(text))
  const missing = [
    { field: 'address', by: ['address_masked', 'address'] },
    { field: 'key_name', by: ['key_name'] },
  ].filter(({ field, by }) => reads(field) && !by.some((name) => kept.includes(name)))
  return missing.map(
    ({ field, by }) =>
      `the view reads $$.${field}, which this endpoint does not keep, so it is NULL: add ${by.join(' or ')} to kept_fields with PATCH /v1/endpoints/{id}`,
  )
}
