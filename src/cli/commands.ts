/**
 * Every command of `inlet`.
 *
 * To add one: declare its options and help under `commands/`, write its function in a file in this folder, and list it here.
 * Declarations must import nothing large: they are loaded for every command.
 */
import { buildRouteMap } from '@stricli/core'
import {
  bindingsCommands,
  destinationsCommands,
  dlqCommands,
  endpointsCommands,
  jobsCommands,
  lossesCommands,
  receiptsCommands,
  shadowsCommands,
  viewsCommands,
} from './commands/account-resources.ts'
import { accountsCommands } from './commands/accounts.ts'
import { backupCommand, restoreCommand } from './commands/backup.ts'
import { certificatesCommands } from './commands/certificates.ts'
import { commitsCommands } from './commands/commits.ts'
import { completionCommand } from './commands/completion.ts'
import { databaseCommands } from './commands/database.ts'
import { demoCommand } from './commands/demo.ts'
import { doctorCommand } from './commands/doctor.ts'
import { joinTokensCommands } from './commands/join-tokens.ts'
import { keysCommands } from './commands/keys.ts'
import { loginCommand, logoutCommand, profilesCommand } from './commands/login.ts'
import { nodesCommands } from './commands/nodes.ts'
import { queryCommand } from './commands/query.ts'
import { scrubCommand } from './commands/scrub.ts'
import { secretsCommands } from './commands/secrets.ts'
import { segmentsCommands } from './commands/segments.ts'
import { sendCommand } from './commands/send.ts'
import { controlCommand, deliveryCommand, ingestCommand, nodeCommand, startCommand } from './commands/serve.ts'
import { applyCommand, exportCommand, initCommand, planCommand, schemaCommand, testCommand } from './commands/setup.ts'
import { signInLinkCommand } from './commands/sign-in-link.ts'
import { tailCommand } from './commands/tail.ts'

export const commands = buildRouteMap({
  routes: {
    start: startCommand,
    control: controlCommand,
    node: nodeCommand,
    ingest: ingestCommand,
    delivery: deliveryCommand,
    demo: demoCommand,
    login: loginCommand,
    logout: logoutCommand,
    profiles: profilesCommand,
    send: sendCommand,
    tail: tailCommand,
    query: queryCommand,
    init: initCommand,
    test: testCommand,
    plan: planCommand,
    apply: applyCommand,
    export: exportCommand,
    schema: schemaCommand,
    endpoints: endpointsCommands,
    destinations: destinationsCommands,
    views: viewsCommands,
    bindings: bindingsCommands,
    shadows: shadowsCommands,
    dlq: dlqCommands,
    jobs: jobsCommands,
    receipts: receiptsCommands,
    losses: lossesCommands,
    accounts: accountsCommands,
    keys: keysCommands,
    secrets: secretsCommands,
    certificates: certificatesCommands,
    nodes: nodesCommands,
    'join-tokens': joinTokensCommands,
    'sign-in-link': signInLinkCommand,
    segments: segmentsCommands,
    commits: commitsCommands,
    scrub: scrubCommand,
    database: databaseCommands,
    backup: backupCommand,
    restore: restoreCommand,
    doctor: doctorCommand,
    completion: completionCommand,
  },
  docs: {
    brief: 'Open, self-hosted ingest: HTTP and MQTT in, Parquet in your own bucket',
    fullDescription: `Open, self-hosted ingest: HTTP and MQTT in, Parquet in your own bucket.

Commands on a server take their configuration from environment variables: docs/configuration.md lists them.
Commands that call an Inlet use the profile of inlet login: inlet --profile NAME COMMAND uses another one.
--json prints what scripts can read, with the names of fields of the API: a list is an array.
Exit codes: 0 success, 1 failure, 2 wrong usage, 3 changes (inlet plan --exit-code).`,
    // Children of start and node.
    hideRoute: { ingest: true, delivery: true },
  },
})
