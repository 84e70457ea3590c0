/**
 * Secrets of an account, which views name in `hmac_sha256`.
 *
 * Law: the API returns the value of a secret only if Inlet made it, and only in that response.
 */
import { Buffer } from 'node:buffer'
import { z } from 'zod'
import { Id } from './id.ts'
import { secretLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

const { nameCharsMax, bytesMin, bytesMax } = secretLimits

export const SecretName = z
  .string()
  .max(nameCharsMax)
  .regex(/^[a-z][a-z0-9_]*$/, 'must be lowercase letters, digits and underscores, and start with a letter')
  .meta({ examples: ['email_key'] })

/** Values by name, in base64. */
export const SecretValues = z.record(z.string(), z.string())
export type SecretValues = Readonly<z.infer<typeof SecretValues>>

export const Secret = z.object({
  id: Id,
  name: z.string(),
  created_at: Timestamp,
  rotated_at: Timestamp.nullable().meta({ description: 'when its value was last replaced; null for never' }),
  used_by: z
    .array(z.string())
    .meta({ description: `names of views with a version that names it and is not archived, at most ${secretLimits.usedByMax}` }),
})
export type Secret = z.infer<typeof Secret>

const value = z
  .string()
  .max(2 * bytesMax, { abort: true })
  .refine((text) => text.isWellFormed(), 'must be well-formed Unicode')
  .optional()
  .meta({
    description: `${bytesMin} to ${bytesMax} bytes; if not set, Inlet makes one at random and returns it once`,
    examples: ['at least sixteen bytes'],
  })

const encoding = z
  .enum(['text', 'base64'])
  .default('text')
  .meta({ description: 'how `value` is written: its UTF-8 is the secret, or base64 of the bytes' })

type Given = { readonly value?: string | undefined; readonly encoding: 'text' | 'base64' }
type GivenValue = Given & { readonly value: string }

/** Messages must not have a part of the value. */
const withRules = <T extends z.ZodType<Given>>(schema: T): T =>
  schema.superRefine((given, context) => {
    if (given.value === undefined) return
    const bytes = bytesOfSecret({ ...given, value: given.value })
    const message =
      bytes === undefined
        ? 'must be base64, as `encoding` says'
        : bytes.byteLength < bytesMin || bytes.byteLength > bytesMax
          ? `must have ${bytesMin} to ${bytesMax} bytes: one that can be guessed protects nothing`
          : undefined
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['value'], message })
  })

export const CreateSecret = withRules(z.strictObject({ name: SecretName, value, encoding }))
export type CreateSecret = z.infer<typeof CreateSecret>

export const RotateSecret = withRules(z.strictObject({ value, encoding }))
export type RotateSecret = z.infer<typeof RotateSecret>

/** The response to a request that set the value. */
export const SetSecret = Secret.extend({
  value: z.string().optional().meta({ description: 'the secret in base64, returned only now, and only if Inlet made it' }),
})
export type SetSecret = z.infer<typeof SetSecret>

/** Returns the bytes of a secret; undefined if it is not base64 although it should be. */
export function bytesOfSecret({ value: text, encoding: form }: GivenValue): Buffer | undefined {
  if (form === 'text') return Buffer.from(text)
  const plain = text.replace(/\s/g, '').replace(/=+$/, '')
  const bytes = Buffer.from(plain, 'base64')
  return bytes.toString('base64').replace(/=+$/, '') === plain ? bytes : undefined
}

/** Whether a definition calls the function that needs secrets. A text that looks like it counts as well. */
export function mayNeedSecrets(definition: Hashing): boolean {
  return expressionsOf(definition).some((text) => /hmac_sha256/i.test(text))
}

type Hashing = {
  readonly columns: readonly { readonly value?: string | undefined }[]
  readonly filters?: readonly { readonly condition: string }[] | undefined
}

function expressionsOf({ columns, filters = [] }: Hashing): readonly string[] {
  return [...columns.map(({ value = '' }) => value), ...filters.map(({ condition }) => condition)]
}

/** Returns the names of secrets that definitions hash with, as their texts have them. */
export function secretsIn(definitions: readonly Hashing[]): readonly string[] {
  const calls = definitions.flatMap(expressionsOf).flatMap((text) => [...text.matchAll(/hmac_sha256\s*\(\s*'([^']*)'/gi)])
  return [...new Set(calls.map(([, name = '']) => name))].toSorted()
}

/** Returns the value that stands for a secret where the secret itself may not be: its name, in base64. */
export function standInOf(name: string): string {
  return Buffer.from(name).toString('base64')
}
