import { Button as BaseButton } from '@base-ui/react/button'
import type { ComponentProps, ReactNode } from 'react'
import style from './button.module.css'
import { Spinner } from './spinner.tsx'

export type Look = 'primary' | 'plain' | 'quiet' | 'danger'

export type ButtonProps = Omit<ComponentProps<'button'>, 'className'> & {
  readonly look?: Look
  readonly size?: 'small' | 'normal'
  /** Shows that the action runs, and takes no other click meanwhile. */
  readonly busy?: boolean
  readonly icon?: ReactNode
  /** Takes the whole width. */
  readonly wide?: boolean
}

export function Button({
  look = 'plain',
  size = 'normal',
  busy = false,
  wide = false,
  icon,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  return (
    <BaseButton
      type="button"
      {...rest}
      className={style.button}
      data-look={look}
      data-size={size}
      data-wide={wide || undefined}
      disabled={disabled === true || busy}
      // Keeps the focus where it is while the action runs.
      focusableWhenDisabled={busy}
      aria-busy={busy || undefined}
    >
      {busy ? <Spinner /> : icon}
      {children}
    </BaseButton>
  )
}

/** For links that look like buttons: the shell passes the links of its router. */
export const buttonClass = style.button ?? ''

/** A button with a picture alone; `label` is its name for those who cannot see it. */
export function IconButton({ label, children, ...rest }: Omit<ButtonProps, 'icon' | 'wide'> & { readonly label: string }) {
  return (
    <Button {...rest} aria-label={label} title={label} data-icon-only="">
      {children}
    </Button>
  )
}
