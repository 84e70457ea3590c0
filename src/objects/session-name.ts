/**
 * Returns the session name for an assumed role, which the owner of the bucket finds in CloudTrail and in the access logs of the bucket:
 * `inlet-<end of the account id>-<endpoint id>`. STS accepts 2 to 64 characters of `[\w+=,.@-]`, too few for two complete ids.
 */
export function sessionName({ account_id, endpoint_id }: { readonly account_id: string; readonly endpoint_id?: string }): string {
  return `inlet-${account_id.slice(-12)}-${endpoint_id ?? 'control'}`
}
