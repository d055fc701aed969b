/* The program retryd: hands the command line to the room. */
#include "cmd/cmd.h"

int main(int argc, char **argv)
{
    return cmd_main(argc, argv);
}
