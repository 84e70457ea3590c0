/** Forms of text that are needed where no schemas are loaded. */

/** `ing_live_` and 32 base62 characters. */
export const apiKeyPattern = /^ing_live_[0-9A-Za-z]{32}$/

/** `ing_node_` and 32 base62 characters. */
export const nodeSecretPattern = /^ing_node_[0-9A-Za-z]{32}$/

/** `ing_join_` and 32 base62 characters. */
export const joinSecretPattern = /^ing_join_[0-9A-Za-z]{32}$/

/** The secret of a join token, and behind a full stop the pin of a root certificate. */
export const joinTokenPattern = /^ing_join_[0-9A-Za-z]{32}(?:\.[\w-]{43})?$/

/** The id of the adoption of a log. */
export const adoptionPattern = /^[0-9a-f]{8}$/

export const regionPattern = /^[a-z]{3}$/

/** A domain, with room for the labels of an endpoint and its region before it. */
export const hostnamePattern = /^(?=.{1,200}$)[a-z0-9_]([\w-]{0,61}[a-z0-9])?(\.[a-z0-9_]([\w-]{0,61}[a-z0-9])?)*$/i
