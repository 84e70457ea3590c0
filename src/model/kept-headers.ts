/** The HTTP headers that an endpoint keeps with its records, chosen by the account by their names. */
import { z } from 'zod'
import { keptHeaderLimits } from './limits.ts'

const { namesMax, nameCharsMax } = keptHeaderLimits

/** They hold keys and tokens, which must not end up in a bucket. */
const secretHeaders: readonly string[] = ['authorization', 'proxy-authorization', 'x-api-key', 'cookie']

/** RFC 9110 §5.1. */
const HeaderName = z
  .string()
  .regex(
    new RegExp(`^[A-Za-z0-9!#$%&'*+.^_\`|~-]{1,${nameCharsMax}}$`),
    `must be the name of an HTTP header of at most ${nameCharsMax} characters, such as x-hub-signature-256`,
  )
  .toLowerCase()
  .refine((name) => !secretHeaders.includes(name), {
    error: ({ input }) => `must not be ${input}: this header has keys or sessions, which must not end up in the data`,
  })
  .meta({ examples: ['x-hub-signature-256'] })

export const KeptHeaders = z
  .array(HeaderName)
  .max(namesMax, `must name at most ${namesMax} headers`)
  .refine((names) => new Set(names).size === names.length, 'must not name a header twice')
  .meta({
    description: `HTTP headers that are kept with the records of a request, such as the signature of a webhook: \`$$.headers.<name>\` in views. In lower case; none of ${secretHeaders.join(', ')}`,
    examples: [['x-hub-signature-256', 'x-github-event', 'x-github-delivery']],
  })
