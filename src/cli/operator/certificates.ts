/** `inlet certificates`: shows and renews certificates that control issued, directly in the database. */
import { isoTimestamp } from '#lib/clock.ts'
import { UserError } from '#lib/user-error.ts'
import { type CertificateState, findRoot, listCertificates, requestCertificate } from '#store/naming/certificates.ts'
import type { CliContext } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { openToChange, openToRead } from './store.ts'

export async function listIssued(this: CliContext, { json }: JsonFlags): Promise<void> {
  await using store = await openToRead(this)
  const certificates = await listCertificates(store.db)
  if (json)
    return printJson(
      this,
      certificates.map(({ due_at, ...rest }) => ({ ...rest, due_at: isoTimestamp(due_at) })),
    )
  const now = this.clock.now()
  const rows = certificates.map((certificate) => [
    certificate.name,
    certificate.not_after ?? 'none yet',
    nextOrder(certificate, now),
    certificate.last_error ?? '-',
  ])
  const table = toTable([['NAME', 'VALID UNTIL', 'NEXT ORDER', 'LAST ERROR'], ...rows])
  this.process.stdout.write(certificates.length === 0 ? 'Control has issued no certificates.\n' : table)
}

export async function renew(this: CliContext, flags: JsonFlags, name: string): Promise<void> {
  await using store = await openToChange(this)
  const what = { operation: 'renewCertificate', account_id: null, resource_id: name }
  await audited(store, this.clock, what, async () => {
    if (await requestCertificate(store, name)) return
    throw new UserError(`there is no certificate ${name}: inlet certificates list shows the names`)
  })
  printResult(
    this,
    flags,
    { name, requested: true },
    `Control orders ${name} within seconds: inlet certificates list shows what comes of it.\n`,
  )
}

export async function printRoot(this: CliContext): Promise<void> {
  await using store = await openToRead(this)
  const root = await findRoot(store.db)
  if (root !== undefined) {
    this.process.stdout.write(root)
    return
  }
  const [ofServer] = (await listCertificates(store.db)).flatMap(({ issuer }) => issuer?.split('acme ')[1] ?? [])
  throw new UserError(
    ofServer === undefined
      ? 'there is no certificate of a development CA: start control with INLET_CERTIFICATES=development, and a node, or set INLET_BASE_URL to https://'
      : `certificates come from the ACME server ${ofServer}, whose root this database does not have: clients trust a public CA already; for a server of your own get the root from there, and give nodes its file (INLET_CONTROL_CA_FILE)`,
  )
}

function nextOrder({ due_at, failures }: CertificateState, now: number): string {
  if (due_at <= now) return 'now'
  const at = new Date(due_at).toISOString()
  return failures === 0 ? at : `${at}, after ${failures} failed`
}
