import type { Scope } from '../../api/keys.ts'

/** In the order in which people need them. */
export const scopeTexts: readonly { readonly scope: Scope; readonly label: string; readonly hint: string }[] = [
  { scope: 'ingest', label: 'Send data', hint: 'Over HTTP and MQTT. For devices, servers and log shippers.' },
  { scope: 'metrics', label: 'Read', hint: 'Status, commits and data quality. For dashboards and alerts.' },
  { scope: 'query', label: 'Query', hint: 'The rows and records that were delivered, with SQL. For analysts and scripts.' },
  {
    scope: 'admin',
    label: 'Manage everything',
    hint: 'Endpoints, destinations, views and keys. For scripts that set up Inlet.',
  },
]
