/**
 * Buckets that an account may use where one set of credentials opens the buckets of all accounts.
 *
 * Law: an entry is a bucket, or a bucket and a prefix, as `lake` or `lake/raw`. It opens all that is below it, and nothing beside it. Entries
 * of two accounts never overlap, so no account reaches what is another's.
 */
import { z } from 'zod'
import { Bucket, normalizePrefix, Prefix } from './destination.ts'
import { allowedBucketsMax } from './limits.ts'

const expected = 'must be a bucket, or a bucket and a prefix, such as lake or lake/raw'

export const AllowedBucket = z
  .string()
  .max(640, { abort: true })
  .meta({ description: expected.replace('must be ', ''), examples: ['lake/raw'] })
  .transform(normalizePrefix)
  .refine(isBucketWithPrefix, expected)

export const AllowedBuckets = z.array(AllowedBucket).max(allowedBucketsMax)

/** Whether an object, or all objects below a path that ends in a slash, may be used. */
export function isAllowed(entries: readonly string[], bucket: string, key: string): boolean {
  return entries.some((entry) => `${bucket}/${key}`.startsWith(`${entry}/`))
}

/** Returns what to allow so that a destination can be used. */
export function entryOf({ bucket, prefix = '' }: { readonly bucket: string; readonly prefix?: string }): string {
  return prefix === '' ? bucket : `${bucket}/${prefix}`
}

/** Returns the entry of `others` of which a part is below `entry`, or above it. */
export function findOverlap(entry: string, others: readonly string[]): string | undefined {
  return others.find((other) => `${entry}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${entry}/`))
}

function isBucketWithPrefix(text: string): boolean {
  const [bucket = '', ...parts] = text.split('/')
  // Some stores take two slashes for one, so that two prefixes would be one folder.
  return Bucket.safeParse(bucket).success && parts.every((part) => part !== '') && Prefix.safeParse(parts.join('/')).success
}
