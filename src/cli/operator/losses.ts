/** `inlet nodes losses`: shows and accepts losses of all accounts, directly in the database. */
import { lossService } from '#control/resources/losses.ts'
import { namedId } from '#lib/named-id.ts'
import { parseFields } from '#model/field-errors.ts'
import { pageLimits } from '#model/limits.ts'
import { InstallationLossesQuery, type Loss } from '#model/loss.ts'
import { describeLost } from '#model/lost-records.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { listAll, openToChange, openToRead, servicesBeside } from './store.ts'

export type LossesFlags = JsonFlags & { readonly account?: string; readonly state?: string }

export async function listAllLosses(this: CliContext, { account, state, json }: LossesFlags): Promise<void> {
  const { value, errors } = parseFields(InstallationLossesQuery, { account_id: account, state, limit: pageLimits.max })
  if (errors !== undefined)
    throw new UsageError(errors.map(({ path, message }) => `--${path.replace('account_id', 'account')}: ${message}`).join('\n'))
  await using store = await openToRead(this)
  const service = lossService(servicesBeside(this, store))
  const losses = await listAll((page) => service.listAll({ ...value, ...page }))
  if (json) return printJson(this, losses)
  const counts = ['SEGMENTS', 'RECORDS', 'BYTES', 'AS OF']
  const heads = ['RECORDED', 'STATE', 'ACCOUNT', 'ENDPOINT', 'NODE', ...counts, 'SEARCHED', 'ID', 'IN DOUBT']
  const rows = losses.map(({ recorded_at, segments, records, bytes, reported_at, id, ...loss }) => [
    ...[recorded_at, loss.state, loss.account_id, loss.endpoint_name, namedId(loss.node_id, loss.node_name)],
    ...[String(segments), String(records ?? '-'), String(bytes), reported_at],
    ...[loss.searched_at ?? '-', id, loss.search_problem ?? '-'],
  ])
  const notice = 'What a node acknowledged after the time AS OF, and did not deliver, is lost as well.\n'
  this.process.stdout.write(losses.length === 0 ? 'There are no losses.\n' : `${toTable([heads, ...rows])}${notice}`)
}

export async function confirmAnyLoss(this: CliContext, flags: JsonFlags, id: string): Promise<void> {
  await using store = await openToChange(this)
  const service = lossService(servicesBeside(this, store))
  const nameCreated = ({ account_id }: Loss) => ({ account_id })
  const what = { operation: 'confirmInstallationLoss', account_id: null, resource_id: id, nameCreated }
  const loss = await audited(store, this.clock, what, () => service.confirmForAccount(id, 'cli'))
  const lost = describeLost(loss, ` of ${loss.endpoint_name} on node ${namedId(loss.node_id, loss.node_name)}`)
  printResult(this, flags, loss, `The loss is confirmed for the account ${loss.account_id}: ${lost}.\n`)
}
