/** Forms of text that are needed where no schemas are loaded. */

/** `ing_live_` and 32 base62 characters. */
export const apiKeyPattern = /^ing_live_[0-9A-Za-z]{32}$/

/** `ing_node_` and 32 base62 characters. */
export const nodeSecretPattern = /^ing_node_[0-9A-Za-z]{32}$/

export const regionPattern = /^[a-z]{3}$/
