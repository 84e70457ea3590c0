/** `inlet join-tokens`: manages the tokens with which nodes join, directly in the database, so that it works while control is down. */
import type { X509Certificate } from 'node:crypto'
import { certificateSourcesOf } from '#config/addresses.ts'
import type { Config } from '#config/config.ts'
import { joinTokenService } from '#control/fleet/join-tokens.ts'
import { readNamed } from '#lib/certificate.ts'
import { rootOf } from '#lib/root-certificate.ts'
import { parseFields } from '#model/field-errors.ts'
import { CreateJoinToken, type JoinToken } from '#model/join-token.ts'
import { findRoot } from '#store/naming/certificates.ts'
import type { Store } from '#store/store.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'
import { type JsonFlags, printJson, printResult } from '../terminal/print-json.ts'
import { toTable } from '../terminal/table.ts'
import { audited } from './audited.ts'
import { listAll, openToChange, openToRead, servicesBeside } from './store.ts'

export type CreateJoinTokenFlags = JsonFlags & {
  readonly name: string
  readonly region?: string
  /** `any` for no limit. */
  readonly uses?: number | 'any'
  readonly ttl?: string
}

export async function createJoinToken(this: CliContext, flags: CreateJoinTokenFlags): Promise<void> {
  const settings = parseSettings(flags)
  await using store = await openToChange(this)
  const root = await readRootCertificate(await this.readConfig(), store)
  const tokens = joinTokenService({ ...servicesBeside(this, store), rootCertificate: () => root })
  const what = { operation: 'createJoinToken', account_id: null, resource_id: null }
  const nameCreated = ({ id: resource_id }: JoinToken) => ({ resource_id })
  const created = await audited(store, this.clock, { ...what, nameCreated }, () => tokens.create(settings))
  const { id, join_token, region, uses_max, expires_at } = created
  const who = uses_max === null ? 'any number of nodes' : uses_max === 1 ? 'one node' : `${uses_max} nodes`
  const pinned = root === undefined ? '' : '\nIt pins the root certificate of control, so nodes need no CA file.\n'
  printResult(
    this,
    flags,
    created,
    `${join_token}\n\n` +
      `Save the token now: it is not shown again. Its id is ${id}.\n` +
      `Until ${expires_at}, ${who} may join with it ${region === null ? 'in any region' : `in region ${region}`}:\n\n` +
      `  inlet node --region ${region ?? 'REGION'} --control URL --join-token TOKEN\n${pinned}`,
  )
}

export async function listAllJoinTokens(this: CliContext, { json }: JsonFlags): Promise<void> {
  await using store = await openToRead(this)
  const service = joinTokenService({ ...servicesBeside(this, store), rootCertificate: () => undefined })
  const tokens = await listAll((page) => service.list(page))
  if (json) return printJson(this, tokens)
  const rows = tokens.map(({ id, name, region, status, uses, uses_max, expires_at }) => [
    ...[id, name, region ?? 'any', status, uses_max === null ? String(uses) : `${uses} of ${uses_max}`, expires_at],
  ])
  const table = toTable([['ID', 'NAME', 'REGION', 'STATUS', 'USED', 'EXPIRES'], ...rows])
  this.process.stdout.write(tokens.length === 0 ? 'There are no join tokens.\n' : table)
}

export async function revokeOneJoinToken(this: CliContext, flags: JsonFlags, id: string): Promise<void> {
  await using store = await openToChange(this)
  const what = { operation: 'revokeJoinToken', account_id: null, resource_id: id }
  const tokens = joinTokenService({ ...servicesBeside(this, store), rootCertificate: () => undefined })
  const revoked = await audited(store, this.clock, what, () => tokens.revoke(id))
  const { name, revoked_at, uses } = revoked
  const joined = uses === 1 ? 'The node that joined with it stays' : `The ${uses} nodes that joined with it stay`
  printResult(
    this,
    flags,
    revoked,
    `The join token "${name}" was revoked at ${revoked_at}. ${uses === 0 ? 'No node has joined with it' : joined}.\n`,
  )
}

function parseSettings({ name, region, uses, ttl }: CreateJoinTokenFlags): CreateJoinToken {
  const uses_max = uses === 'any' ? null : uses
  const { value, errors } = parseFields(CreateJoinToken, { name, region, uses_max, ttl })
  if (errors === undefined) return value
  throw new UsageError(
    errors
      .map(
        ({ path, message }) =>
          `--${path === 'uses_max' ? `uses: ${message.replace(' or null', ', or any')}` : `${path}: ${message}`}`,
      )
      .join('\n'),
  )
}

/** Returns the root of the certificate of the node API, if this command has the configuration of control. */
async function readRootCertificate(config: Config, { db }: Store): Promise<X509Certificate | undefined> {
  const { nodeApiCertificateFile } = config
  if (nodeApiCertificateFile !== null) return rootOf(await readNamed('INLET_NODE_API_CERTIFICATE_FILE', nodeApiCertificateFile))
  const issued = certificateSourcesOf(config).nodeApi === 'issued' ? await findRoot(db) : undefined
  return issued === undefined ? undefined : rootOf(Buffer.from(issued))
}
