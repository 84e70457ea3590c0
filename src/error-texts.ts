/**
 * The text of each error's page (`pages/errors.ts`): what the error means, and what to do.
 *
 * Law: written for the person whose request failed. Text in backticks is typed or read as it stands.
 */
import type { ErrorCode } from './errors.ts'

export type ErrorText = { readonly meaning: string; readonly remedies: readonly string[] }

export const errorTexts: Readonly<Record<ErrorCode, ErrorText>> = {
  bad_request: {
    meaning: 'The request is not valid HTTP, or cannot be read as it was sent.',
    remedies: [
      'Read `detail` in the response: it names the header or the part that is wrong.',
      'Use an HTTP library instead of building requests by hand. Behind a proxy, check that it forwards `Host`, `Content-Length` and `Transfer-Encoding` unchanged.',
      'To `/mqtt`, connect with a WebSocket client that offers the subprotocol `mqtt`.',
    ],
  },
  unauthorized: {
    meaning: 'The request has no credentials, or they are not valid: the key is unknown or revoked, or the token has expired.',
    remedies: [
      'Management API: exchange the API key at `POST /v1/token/exchange`, and send the token as `Authorization: Bearer <token>`. A token is valid for 15 minutes, or for the `ttl` that you request.',
      'Ingest: send the API key as `X-API-Key`. Nodes know the keys of accounts that have an endpoint in their region.',
      'Create another key with `POST /v1/keys`, or with `inlet keys create` on the machine of control.',
    ],
  },
  forbidden: {
    meaning: 'The credentials are valid, but do not allow this: they lack the scope, or the operation is the operator’s.',
    remedies: [
      'Read `detail`: it names the scope. Exchange the key for a token of that scope, or create a key that has it.',
      'Sending data needs the scope `ingest`, and a key of the account that owns the endpoint.',
      '`/v1/accounts` and `/v1/nodes` need the operator token: `INLET_OPERATOR_TOKEN`, or the content of `<data>/operator-token`.',
    ],
  },
  account_suspended: {
    meaning:
      'The operator of this installation suspended the account. Its data is refused and its configuration cannot be changed. What it has is kept, is still delivered, and can be read.',
    remedies: [
      'Ask the operator of this installation for the reason.',
      'Keep your data until the account is resumed: nothing that was refused is stored.',
      'As the operator, resume the account with `inlet accounts resume <id>`, or `PATCH /v1/accounts/<id>` with `{"status":"active"}`.',
    ],
  },
  not_found: {
    meaning: 'Nothing has this path or id, or it belongs to another account.',
    remedies: [
      'Check the path and the id. The lists, such as `GET /v1/endpoints`, show what the account has.',
      'Ingest: the endpoint does not exist, or is being deleted. Send to another one.',
    ],
  },
  method_not_allowed: {
    meaning: 'The path exists, but not with this method.',
    remedies: ['Use one of the methods in the header `Allow`.', 'Send data with `POST /v1/ingest`.'],
  },
  not_acceptable: {
    meaning: 'The header `Accept` excludes JSON, and the management API returns nothing else.',
    remedies: ['Send `Accept: application/json`, or leave the header out.'],
  },
  request_timeout: {
    meaning: 'The request did not arrive completely in time. Nothing of it was stored.',
    remedies: [
      'Send it again.',
      'If it happens often, send smaller requests or use a faster connection.',
      'As the operator, set `INLET_REQUEST_TIMEOUT_SECONDS`: the time for a whole request.',
    ],
  },
  conflict: {
    meaning:
      'The change does not fit the present state. For example, a name is taken, a destination is in use, or an endpoint is being deleted.',
    remedies: [
      'Read `detail`: it names what is in the way.',
      'Read the resource again, then decide whether to repeat the change.',
    ],
  },
  view_already_attached: {
    meaning: 'This version of the view is already attached to the endpoint.',
    remedies: [
      'There may be nothing to do: `GET /v1/endpoints/<id>/views` lists what is attached.',
      'To attach it with other settings, detach it first.',
    ],
  },
  payload_too_large: {
    meaning: 'The request, or one record in it, is larger than this server accepts. Nothing of it was stored.',
    remedies: [
      'Ingest: a record has at most 1 MiB, and a request at most 10 MiB unless the operator set `INLET_MAX_REQUEST_BYTES`. `detail` names the line. Split the request, or shorten the record.',
      'Management API: a body has at most 1 MiB, or 16 MiB for a preview or a suggestion.',
    ],
  },
  unsupported_media_type: {
    meaning: 'The operation does not read this `Content-Type` or `Content-Encoding`.',
    remedies: [
      'Ingest: send `application/x-ndjson` with one record per line, or `application/json`, or another type that ends with `+json`, with a single record or an array of them. Compress with `gzip`, `zstd`, `deflate` or `br`, or not at all.',
      'Management API: send `application/json`.',
    ],
  },
  expectation_failed: {
    meaning: 'The header `Expect` has a value other than `100-continue`.',
    remedies: ['Send `Expect: 100-continue`, or leave the header out.'],
  },
  validation_error: {
    meaning: 'The request can be read, but its content is not valid.',
    remedies: [
      'Read `errors` in the response: it lists every problem with the path of its field. An unknown field is a problem too, so that a typo is not ignored.',
      'Ingest: check that the body has at least one record and is compressed as `Content-Encoding` says. If the account has several endpoints, name one: `/v1/ingest?endpoint=<id>`.',
    ],
  },
  idempotency_key_reused: {
    meaning:
      'The endpoint stored other records with this `Idempotency-Key` within the last 24 hours. Nothing of this request was stored.',
    remedies: [
      'Make a new key, such as a UUID, for each request, and keep it for repetitions of exactly these bytes.',
      'If you did repeat a request: its body must have the same bytes as the first time. A body that is serialised anew may differ.',
    ],
  },
  too_many_requests: {
    meaning: 'This key or address sent more requests than it may in this time.',
    remedies: [
      'Wait as many seconds as the header `Retry-After` says, then send the request again.',
      'Use an access token until it expires, instead of exchanging the key for every call.',
      'As the operator, raise the limit: `INLET_API_REQUESTS_PER_MINUTE`, `INLET_EXCHANGE_REQUESTS_PER_MINUTE` or `INLET_ADDRESS_REQUESTS_PER_MINUTE`.',
    ],
  },
  quota_exceeded: {
    meaning: 'The account reached one of its quotas: `quota` in the response names it.',
    remedies: [
      'See `GET /v1/quotas` for the limits of the account and how much of them is used.',
      '`endpoints`, `views`, `view_versions`, `api_keys`: delete an endpoint, archive a view, delete a draft or revoke a key that is not needed.',
      '`records_per_second`, `bytes_per_day`: nothing of the request is stored. Send it again after as many seconds as the header `Retry-After` says. A day begins at midnight UTC.',
      'As the operator, raise the quota with `inlet accounts quota <id>`, or `PATCH /v1/accounts/<id>` with `{"quotas":{…}}`.',
    ],
  },
  headers_too_large: {
    meaning: 'The head of the request is too large: it has too many headers, or they are too long.',
    remedies: [
      'Send fewer and shorter headers: at most 100, with 16 KiB in all.',
      'Ingest: the headers that an endpoint keeps (`kept_headers`) may have 4 KiB in a request.',
    ],
  },
  internal_error: {
    meaning: 'Inlet failed. The request is not the cause.',
    remedies: [
      'Send the request again.',
      'If it fails again, tell the operator the time and the header `X-Request-Id`, if there is one. The log has the cause.',
    ],
  },
  unavailable: {
    meaning:
      'The service cannot do this now: it is starting or stopping, cannot reach its database, or has no room for more data. What was refused is not stored.',
    remedies: [
      'Send the same request again, after `Retry-After` seconds if the response has that header.',
      'If `detail` says that the endpoint is paused, resume it: `POST /v1/endpoints/<id>/resume`.',
      'As the operator, read the reasons in `GET /readyz` of control and of each node, and the state of the disks in `GET /v1/nodes`.',
    ],
  },
}
