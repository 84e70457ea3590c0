/** `inlet accounts buckets`: shows and changes what an account may use where no role decides, directly in the database. */
import { AllowedBuckets } from '#model/allowed-bucket.ts'
import { parseFields } from '#model/field-errors.ts'
import { getBucketAccess } from '#store/accounts/accounts.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson } from '../terminal/print-json.ts'
import { changeAccount } from './accounts.ts'
import { openToChange, openToRead } from './store.ts'

export type BucketFlags = JsonFlags & { readonly allow?: readonly string[]; readonly remove?: readonly string[] }

export async function setBuckets(this: CliContext, { allow = [], remove = [], json }: BucketFlags, id: string): Promise<void> {
  const [added, removed] = [parse('--allow', allow), parse('--remove', remove)]
  const isChange = added.length + removed.length > 0
  await using store = await (isChange ? openToChange : openToRead)(this)
  if (isChange)
    await changeAccount(this, store, id, ({ allowed_buckets }) => ({
      allowed_buckets: [...without(allowed_buckets ?? [], removed), ...added],
    }))
  const { allowed } = await getBucketAccess(store.db, id)
  if (json) return printJson(this, allowed)
  const none = 'The account may use no bucket by the credentials of Inlet.\n'
  this.process.stdout.write(allowed.length === 0 ? none : allowed.map((entry) => `${entry}\n`).join(''))
}

function without(allowed: readonly string[], removed: readonly string[]): readonly string[] {
  const unknown = removed.find((entry) => !allowed.includes(entry))
  if (unknown !== undefined)
    throw new UsageError(`--remove: the account has no entry ${unknown}; it has: ${allowed.join(', ') || 'none'}`)
  return allowed.filter((entry) => !removed.includes(entry))
}

function parse(flag: string, entries: readonly string[]): readonly string[] {
  const { value, errors } = parseFields(AllowedBuckets, entries)
  if (errors === undefined) return value
  throw new UsageError(errors.map(({ path, message }) => `${flag} ${entries[Number(path)] ?? ''}: ${message}`).join('\n'))
}
