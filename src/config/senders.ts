/** Options about who may send to ingest. */
import { choice, duration, option, optional, origins } from '#lib/option-types.ts'

export const senderOptions = {
  credentialLease: option(
    'INLET_CREDENTIAL_LEASE',
    '',
    optional(duration(5, 86_400, '30s')),
    'for how long ingest accepts keys and tokens without a word of control, from `5s` to `24h`, such as `30s`; then it refuses all of them with 503, until control confirms them; empty: for ever, with the last configuration ([what a revocation promises](operations.md#what-a-revocation-promises))',
  ),
  corsOrigins: option(
    'INLET_CORS_ORIGINS',
    '',
    optional(origins),
    'origins of web pages that may send to ingest from a browser, separated by commas, such as `https://app.example.com`; `*`: all; also limits MQTT over WebSocket to them, for clients that say an origin; empty: browsers send no HTTP requests, and MQTT takes every origin',
  ),
  publicKeys: option(
    'INLET_PUBLIC_KEYS',
    'false',
    choice(['false', 'true']),
    '`true` allows public keys, which web pages hold: each is for one endpoint and the origins that it names, and may be in the query (`?key=`), as `navigator.sendBeacon` needs. Set it for control and for nodes',
  ),
} as const
