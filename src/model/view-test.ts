/**
 * Tests of views in files: records, and what must become of them.
 *
 * Law: a record ends as a row, or as several of a view that expands an array, is dropped, or becomes a dead letter. A case says what becomes of all of its records: a list that it leaves out is
 * empty.
 */
import { z } from 'zod'
import { secretLimits, viewTestLimits } from './limits.ts'
import { SecretName } from './secret.ts'
import { TimestampInput } from './timestamp.ts'
import { ViewName } from './view.ts'
import { withoutIds } from './without-ids.ts'

const text = z.string().max(viewTestLimits.nameCharsMax)
const fields = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'must be a map',
)

/** How the records of a case were received. */
export const CaseEnvelope = z.strictObject({
  protocol: z.enum(['http', 'mqtt']).optional().meta({ description: 'default: mqtt with a topic or client_id, else http' }),
  topic: text.optional().meta({ examples: ['plant/7/temperature'] }),
  client_id: text.optional().meta({ examples: ['sensor-7'] }),
  content_type: text.optional().meta({ examples: ['application/json'] }),
  address: text
    .optional()
    .meta({ description: 'of the client, as an endpoint with kept_fields has it', examples: ['192.0.2.7'] }),
  key_name: text.optional().meta({ examples: ['warehouse loader'] }),
  headers: z
    .record(z.string(), text)
    .optional()
    .meta({ examples: [{ 'x-request-id': '7' }] }),
  user_properties: z
    .record(z.string(), z.union([text, z.array(text)]))
    .optional()
    .meta({ examples: [{ site: 'north' }] }),
  received_at: TimestampInput.default('2026-01-01T00:00:00.000Z'),
})
export type CaseEnvelope = z.infer<typeof CaseEnvelope>

const ExpectedDeadLetter = z.strictObject({
  error_code: text.meta({ examples: ['cast_failed'] }),
  column: text
    .nullable()
    .optional()
    .meta({ description: 'name of a column', examples: ['amount'] }),
  item: text
    .nullable()
    .optional()
    .meta({ description: 'the path of an element, in a view that expands an array', examples: ['$.items[0]'] }),
  message: text.optional().meta({ examples: ['the record is not valid JSON'] }),
})
export type ExpectedDeadLetter = z.infer<typeof ExpectedDeadLetter>

export const ViewCase = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(viewTestLimits.nameCharsMax)
    .meta({ examples: ['an order becomes a row'] }),
  envelope: CaseEnvelope.optional(),
  records: z
    .array(z.unknown())
    .min(1)
    .max(viewTestLimits.recordsMax)
    .meta({ description: 'JSON values; text is a record as it was sent' }),
  rows: z.array(fields).max(viewTestLimits.rowsMax).optional(),
  dropped: z.int().min(0).optional().meta({ description: 'number of records that the filters drop' }),
  dead_letters: z.array(ExpectedDeadLetter).max(viewTestLimits.rowsMax).optional(),
})
export type ViewCase = z.infer<typeof ViewCase>

/** One document, whose cases are parsed one by one. A file may have several, for several views. */
export const ViewTests = z.strictObject({
  view: ViewName.optional().meta({ description: 'name of the view; if not set, the view in the file beside' }),
  secrets: z
    .record(SecretName, z.string().min(1).max(secretLimits.bytesMax))
    .optional()
    .meta({
      description: 'text that stands for a secret of the account, by its name; if not set, the name itself does',
      examples: [{ email_key: 'a key for tests' }],
    }),
  cases: z.array(z.unknown()).min(1, 'must have at least one case').max(viewTestLimits.casesMax),
})

/** Returns the JSON Schema of a document with tests, for editors: draft 7, which all of them know. */
export function viewTestsJsonSchema(): Readonly<Record<string, unknown>> {
  const document = ViewTests.extend({ cases: z.array(ViewCase).min(1).max(viewTestLimits.casesMax) })
  const options = { target: 'draft-7', io: 'input', unrepresentable: 'any', metadata: withoutIds } as const
  const { $schema, ...schema } = z.toJSONSchema(document, options) as Record<string, unknown>
  return { $schema, title: 'Tests of an Inlet view', description: 'What inlet test reads: docs/setup-in-git.md', ...schema }
}
