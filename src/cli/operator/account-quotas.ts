/** `inlet accounts quota`: shows and changes the quotas of an account, directly in the database, so that it works while control is down. */
import { quotaService } from '#control/resources/quotas.ts'
import { ChangeAccount } from '#model/account.ts'
import { parseFields } from '#model/field-errors.ts'
import { weightLimits } from '#model/limits.ts'
import { quotaNames } from '#model/quota.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { changeAccount } from './accounts.ts'
import { openToChange, openToRead } from './store.ts'

export type Limit = number | 'default'

export type QuotaFlags = {
  readonly endpoints?: Limit
  readonly views?: Limit
  readonly viewVersions?: Limit
  readonly apiKeys?: Limit
  readonly bytesPerDay?: Limit
  readonly recordsPerSecond?: Limit
  readonly weight?: Limit
}

export async function setQuotas(this: CliContext, { json, ...flags }: QuotaFlags & JsonFlags, id: string): Promise<void> {
  const change = parseChange(flags)
  const isChange = Object.values(flags).some((value) => value !== undefined)
  await using store = await (isChange ? openToChange : openToRead)(this)
  if (isChange) await changeAccount(this, store, id, change)
  const { weight, quotas } = await quotaService({ store, clock: this.clock }).get(id)
  if (json) return printJson(this, { weight, quotas })
  const rows = quotaNames.map((name) => [name, String(quotas[name].limit), String(quotas[name].used)])
  this.process.stdout.write(`${toTable([['QUOTA', 'LIMIT', 'USED'], ...rows])}\nThe weight of the account is ${weight}.\n`)
}

function parseChange({ weight, viewVersions, apiKeys, bytesPerDay, recordsPerSecond, ...counted }: QuotaFlags): ChangeAccount {
  const given = {
    ...counted,
    view_versions: viewVersions,
    api_keys: apiKeys,
    bytes_per_day: bytesPerDay,
    records_per_second: recordsPerSecond,
  }
  const quotas = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value === 'default' ? null : value]))
  const { value, errors } = parseFields(ChangeAccount, { quotas, weight: weight === 'default' ? weightLimits.default : weight })
  if (errors === undefined) return value
  const flagOf = (path: string) => `--${path.replace('quotas.', '').replaceAll('_', '-')}`
  throw new UsageError(errors.map(({ path, message }) => `${flagOf(path)}: ${message}`).join('\n'))
}
